#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

// Functions of one number that the compiler can vectorise: they have no branches and no calls. The
// versions for double call the standard library, so that tests in double do not depend on
// approximations. The versions for float are constexpr, because CUDA kernels may call constexpr
// functions.
namespace fovea::math {

inline double exp(double x) { return std::exp(x); }

// Computes eˣ as 2^n e^r with |r| ≤ ln 2 / 2. e^r is the minimax polynomial of degree 6 that begins
// with 1 + r (relative error below 2e-7). If x is below −87.3, the result is about the smallest
// normal number.
constexpr float exp(float x) {
  x = x < -87.3f ? -87.3f : x;  // a comparison that keeps NaN
  x = x > 88.3f ? 88.3f : x;
  const float shift = 12582912.0f + 127.0f;  // adding it to x / ln 2 leaves n + 127 in the low bits
  const float sum = x * 1.44269504088896341f + shift, n = sum - shift;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.3814540580e-3f;
  p = p * r + 8.3687454462e-3f;
  p = p * r + 4.1668388993e-2f;
  p = p * r + 1.6666521132e-1f;
  p = p * r + 4.9999994040e-1f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * std::bit_cast<float>(std::bit_cast<uint32_t>(sum) << 23);  // e^r 2^n
}

inline double tanh(double x) { return std::tanh(x); }
constexpr float tanh(float x) { return 1.0f - 2.0f / (exp(2.0f * x) + 1.0f); }

template <class T>
constexpr T sigmoid(T x) {
  return T{1} / (T{1} + exp(-x));
}

inline double erf(double x) { return std::erf(x); }

// erf by Abramowitz and Stegun 7.1.26: absolute error below 2e-7.
constexpr float erf(float x) {
  const float a = std::abs(x), t = 1.0f / (1.0f + 0.3275911f * a);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  return std::copysign(1.0f - p * t * exp(-a * a), x);
}

}  // namespace fovea::math

#pragma once

#include "ops/vector_math.h"

// One struct per function of one variable: y = f(x), and dy/dx. A new activation function needs one
// struct here, one name in elementwise.h and one line in each kernel file.
namespace fovea::function {

struct Tanh {
  template <class T>
  static constexpr T f(T x) {
    return math::tanh(x);
  }
  template <class T>
  static constexpr T df(T x) {
    return T{1} - f(x) * f(x);
  }
};

struct Sigmoid {
  template <class T>
  static constexpr T f(T x) {
    return math::sigmoid(x);
  }
  template <class T>
  static constexpr T df(T x) {
    return f(x) * (T{1} - f(x));
  }
};

struct Relu {  // max(0, x)
  template <class T>
  static constexpr T f(T x) {
    return x > 0 ? x : T{0};
  }
  template <class T>
  static constexpr T df(T x) {
    return x > 0 ? T{1} : T{0};
  }
};

struct Gelu {  // x Φ(x)
  template <class T>
  static constexpr T phi(T x) {
    return T(0.5) * (T{1} + math::erf(x * T(0.70710678118654752440)));
  }
  template <class T>
  static constexpr T f(T x) {
    return x * phi(x);
  }
  template <class T>
  static constexpr T df(T x) {
    return phi(x) + x * T(0.39894228040143267794) * math::exp(T(-0.5) * x * x);
  }
};

struct GeluTanh {  // x (1 + tanh u) / 2 with u = √(2/π) (x + 0.044715 x³) approximates x Φ(x)
  static constexpr double kRoot = 0.79788456080286535588, kCubic = 0.044715;
  template <class T>
  static constexpr T tanh_u(T x) {
    return math::tanh(T(kRoot) * (x + T(kCubic) * x * x * x));
  }
  template <class T>
  static constexpr T f(T x) {
    return T(0.5) * x * (T{1} + tanh_u(x));
  }
  template <class T>
  static constexpr T df(T x) {
    const T t = tanh_u(x), du = T(kRoot) * (T{1} + T(3 * kCubic) * x * x);
    return T(0.5) * (T{1} + t + x * (T{1} - t * t) * du);
  }
};

struct Silu {  // x σ(x)
  template <class T>
  static constexpr T f(T x) {
    return x * math::sigmoid(x);
  }
  template <class T>
  static constexpr T df(T x) {
    return math::sigmoid(x) * (T{1} + x * (T{1} - math::sigmoid(x)));
  }
};

struct Exp {
  template <class T>
  static constexpr T f(T x) {
    return math::exp(x);
  }
  template <class T>
  static constexpr T df(T x) {
    return f(x);
  }
};

}  // namespace fovea::function

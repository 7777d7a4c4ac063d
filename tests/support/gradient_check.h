#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "base/random.h"
#include "effort.h"
#include "nn/params.h"
#include "tensor/tape.h"

// Gradient checks for unit tests. They compare backward() with central differences in double. To
// show that the check can fail, they also mutate each contribution to a gradient in four ways (Note
// [Mutants] in tensor/tape.h).
namespace fovea::testing {

inline Tensor random_tensor(Shape shape, uint64_t seed, ElementType type = ElementType::f64,
                            double scale = 0.7) {
  Random random(seed, 99);
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& v : values) v = scale * random.normal();
  return Tensor::of(std::move(shape), values, type);
}

inline Tensor random_input(Shape shape, uint64_t seed) {
  Tensor t = random_tensor(std::move(shape), seed);
  t.track();
  return t;
}

// The number of mutants that all checks of this program tried and detected.
struct Mutants {
  int64_t tried = 0, caught = 0;
  static Mutants& all() {
    static Mutants counts;
    return counts;
  }
};

class GradientCheck {
 public:
  // `f` computes a tensor from `inputs`, which have gradients; L = Σ weight × f().
  GradientCheck(std::vector<Tensor> inputs, std::function<Tensor()> f)
      : inputs_(std::move(inputs)), f_(std::move(f)) {
    weight_ = random_tensor(f_().shape(), 4242);
    if (only_runs()) return;
    for (const Tensor& x : inputs_) numeric_.push_back(differences(x));
  }

  // The largest error over all inputs, relative to the largest entry of the input's gradient. If
  // that gradient is nearly zero (a bias that softmax cancels), the error is relative to a
  // thousandth of the largest gradient, because differences cannot distinguish smaller numbers from
  // rounding.
  double error() const {
    for (const Tensor& x : inputs_) clear(x);
    {
      Tape tape;
      tape.backward(f_(), weight_);
    }
    if (only_runs()) return 0;
    double worst = 0, largest = 1e-6;
    for (const auto& gradient : numeric_)
      for (const double v : gradient) largest = std::max(largest, std::abs(v));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const auto found = gradient(inputs_[i]);
      double top = 1e-3 * largest, off = 0;
      for (size_t j = 0; j < found.size(); ++j) {
        top = std::max(top, std::abs(numeric_[i][j]));
        const double apart = std::abs(found[j] - numeric_[i][j]);
        off = std::isfinite(apart) ? std::max(off, apart) : HUGE_VAL;
      }
      worst = std::max(worst, off / top);
    }
    return worst;
  }

  void expect(double bound = 1e-6) const {
    EXPECT_LE(error(), bound);
    if (only_runs()) return;
    int64_t contributions = 0;
    {
      GradientMutation none(GradientMutation::Kind::sign, -1);
      error();
      contributions = none.seen;
    }
    for (int64_t at = 0; at < contributions; ++at)
      for (const auto kind : {GradientMutation::Kind::sign, GradientMutation::Kind::missing,
                              GradientMutation::Kind::scaled, GradientMutation::Kind::masked}) {
        GradientMutation mutation(kind, at);
        const double off = error();
        if (!mutation.done) continue;  // the contribution is 0, so there is no mutation
        Mutants::all().tried++;
        Mutants::all().caught += off > bound;
        if (off <= bound)
          std::printf("mutant not caught: contribution %ld of %ld, way %d, error %.1e\n",
                      static_cast<long>(at), static_cast<long>(contributions),
                      static_cast<int>(kind), off);
      }
  }

 private:
  double value() const {
    const auto y = f_().values(), w = weight_.values();
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * w[i];
    return sum;
  }
  // Central differences with two step sizes, so that the error has order four.
  std::vector<double> differences(const Tensor& x) const {
    constexpr double step = 1e-4;
    std::vector<double> values = x.values(), out(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      const double middle = values[i];
      auto at = [&](double shift) {
        values[i] = middle + shift;
        x.assign(values);
        return value();
      };
      out[i] = (8 * (at(step) - at(-step)) - (at(2 * step) - at(-2 * step))) / (12 * step);
      values[i] = middle;
      x.assign(values);
    }
    return out;
  }
  static void clear(const Tensor& x) {
    if (x.is_parameter())
      x.grad().fill(0);
    else
      x.slot()->release();
  }
  static std::vector<double> gradient(const Tensor& x) {
    if (!x.slot()->holds()) return std::vector<double>(static_cast<size_t>(x.elements()), 0.0);
    return x.grad().values();
  }

  std::vector<Tensor> inputs_;
  std::function<Tensor()> f_;
  Tensor weight_;
  std::vector<std::vector<double>> numeric_;
};

inline void expect_gradient(std::vector<Tensor> inputs, std::function<Tensor()> f) {
  GradientCheck(std::move(inputs), std::move(f)).expect();
}

inline std::vector<Tensor> parameters_of(const ParameterStore& store) {
  std::vector<Tensor> all;
  for (const auto& p : store.all()) all.push_back(p.tensor);
  return all;
}

// The sum of squared differences divided by the sum of squares.
inline double nmse(const Tensor& found, const Tensor& expected) {
  const auto a = found.values(), b = expected.values();
  double off = 0, all = 1e-300;
  for (size_t i = 0; i < a.size(); ++i) {
    off += (a[i] - b[i]) * (a[i] - b[i]);
    all += b[i] * b[i];
  }
  return off / all;
}

inline Tensor in_float(const Tensor& x) {
  return Tensor::of(x.shape(), x.values(), ElementType::f32);
}

// Prints the number of mutants at the end, and fails if less than 99 % were detected.
class MutantReport : public ::testing::Environment {
 public:
  void TearDown() override {
    const Mutants& m = Mutants::all();
    if (m.tried == 0) return;
    std::printf("mutants of gradients: %ld tried, %ld caught\n", static_cast<long>(m.tried),
                static_cast<long>(m.caught));
    EXPECT_GE(static_cast<double>(m.caught), 0.99 * static_cast<double>(m.tried));
  }
};
inline const auto* const mutant_report = ::testing::AddGlobalTestEnvironment(new MutantReport);

}  // namespace fovea::testing

#include <vector>

#include "ops/dropout_mask.h"
#include "ops/elementwise_functions.h"
#include "ops/elementwise_kernel.h"

namespace fovea::kernel {
namespace {

// Calls body(row, factors) for every row, in parallel. Without dropout all factors are 1.
template <class T, class Body>
void each_row(int64_t rows, int64_t cols, const Dropout& dropout, Body body) {
  const DropoutMask mask(dropout);
#pragma omp parallel if (rows * cols > kWorthThreads)
  {
    std::vector<T> factors(static_cast<size_t>(cols), T{1});
#pragma omp for schedule(static)
    for (int64_t i = 0; i < rows; ++i) {
      if (dropout.on()) dropout_row(mask, i, cols, factors.data());
      body(i, factors.data());
    }
  }
}

template <class Body>
void choose(Function f, Body body) {
  switch (f) {
    case Function::tanh:
      return body(function::Tanh{});
    case Function::sigmoid:
      return body(function::Sigmoid{});
    case Function::relu:
      return body(function::Relu{});
    case Function::gelu:
      return body(function::Gelu{});
    case Function::gelu_tanh:
      return body(function::GeluTanh{});
    case Function::silu:
      return body(function::Silu{});
    case Function::exp:
      return body(function::Exp{});
  }
}

}  // namespace

template <class T>
void apply(Cpu, Function f, Matrix<const T> x, const Dropout& dropout, Matrix<T> y) {
  choose(f, [&]<class F>(F) {
    each_row<T>(x.rows, x.cols, dropout, [&](int64_t i, const T* keep) {
      const T* in = x.row(i);
      fold_row(y.row(i), x.cols, OutputMode::set, [=](int64_t j) { return F::f(in[j]) * keep[j]; });
    });
  });
}

template <class T>
void apply_grad(Cpu, Function f, Matrix<const T> x, Matrix<const T> dy, const Dropout& dropout,
                Matrix<T> dx, OutputMode fold) {
  choose(f, [&]<class F>(F) {
    each_row<T>(x.rows, x.cols, dropout, [&](int64_t i, const T* keep) {
      const T *in = x.row(i), *d = dy.row(i);
      fold_row(dx.row(i), x.cols, fold, [=](int64_t j) { return F::df(in[j]) * d[j] * keep[j]; });
    });
  });
}

template <class T>
void gate(Cpu, Function f, Matrix<const T> x, Matrix<const T> z, const Dropout& dropout,
          Matrix<T> y, OutputMode fold) {
  choose(f, [&]<class F>(F) {
    each_row<T>(x.rows, x.cols, dropout, [&](int64_t i, const T* keep) {
      const T *in = x.row(i), *by = z.row(i);
      fold_row(y.row(i), x.cols, fold, [=](int64_t j) { return F::f(in[j]) * by[j] * keep[j]; });
    });
  });
}

template <class T>
void gate_grad(Cpu, Function f, const GateGrad<T>& in, const Dropout& dropout) {
  choose(f, [&]<class F>(F) {
    each_row<T>(in.x.rows, in.x.cols, dropout, [&](int64_t i, const T* keep) {
      const T *x = in.x.row(i), *z = in.z.row(i), *dy = in.dy.row(i);
      fold_row(in.dx.row(i), in.x.cols, in.fold,
               [=](int64_t j) { return F::df(x[j]) * z[j] * dy[j] * keep[j]; });
    });
  });
}

template <class T>
void relu_grad(Cpu, Matrix<const T> y, Matrix<const T> dy, const Dropout& dropout, Matrix<T> dx,
               OutputMode fold) {
  each_row<T>(y.rows, y.cols, dropout, [&](int64_t i, const T* keep) {
    const T *value = y.row(i), *d = dy.row(i);
    fold_row(dx.row(i), y.cols, fold,
             [=](int64_t j) { return value[j] > 0 ? d[j] * keep[j] : T{0}; });
  });
}

template <class T>
void residual(Cpu, Matrix<const SumType<T>> x, Matrix<const T> f, const Dropout& dropout,
              Matrix<SumType<T>> y) {
  each_row<T>(f.rows, f.cols, dropout, [&](int64_t i, const T* keep) {
    const T *from = x.row(i), *in = f.row(i);
    fold_row(y.row(i), f.cols, OutputMode::set,
             [=](int64_t j) { return from[j] + in[j] * keep[j]; });
  });
}

template <class T>
void drop(Cpu, Matrix<const SumType<T>> x, const Dropout& dropout, Matrix<T> y, OutputMode fold) {
  each_row<T>(x.rows, x.cols, dropout, [&](int64_t i, const T* keep) {
    const T* in = x.row(i);
    fold_row(y.row(i), x.cols, fold, [=](int64_t j) { return in[j] * keep[j]; });
  });
}

namespace {

// Calls body(index in y, index in a, index in b) for every element of y, with the last axis
// fastest.
template <class Body>
void each_element(const Broadcast& s, Body body) {
  int64_t y = 0;
  for (int64_t i = 0; i < s.size[0]; ++i)
    for (int64_t j = 0; j < s.size[1]; ++j)
      for (int64_t k = 0; k < s.size[2]; ++k) {
        const int64_t a = i * s.a[0] + j * s.a[1] + k * s.a[2];
        const int64_t b = i * s.b[0] + j * s.b[1] + k * s.b[2];
        for (int64_t l = 0; l < s.size[3]; ++l, ++y) body(y, a + l * s.a[3], b + l * s.b[3]);
      }
}

}  // namespace

template <class T>
void binary(Cpu, Binary what, const Broadcast& shape, const T* a, const T* b, T* y) {
  if (what == Binary::add)
    each_element(shape, [=](int64_t i, int64_t j, int64_t k) { y[i] = a[j] + b[k]; });
  else
    each_element(shape, [=](int64_t i, int64_t j, int64_t k) { y[i] = a[j] * b[k]; });
}

template <class T>
void binary_grad(Cpu, Binary what, const Broadcast& shape, const T* dy, const T* b, T* da) {
  if (what == Binary::add)
    each_element(shape, [=](int64_t i, int64_t j, int64_t) { da[j] += dy[i]; });
  else
    each_element(shape, [=](int64_t i, int64_t j, int64_t k) { da[j] += dy[i] * b[k]; });
}

template <class T>
void scale(Cpu on, Matrix<const T> x, double factor, Matrix<T> y, OutputMode fold) {
  const T by = static_cast<T>(factor);
  scale_by(on, x, &by, y, fold);
}

template <class T>
void scale_by(Cpu, Matrix<const T> x, const T* factor, Matrix<T> y, OutputMode fold) {
  const T by = *factor;
#pragma omp parallel for schedule(static) if (x.size() > kWorthThreads)
  for (int64_t i = 0; i < x.rows; ++i) {
    const T* in = x.row(i);
    fold_row(y.row(i), x.cols, fold, [=](int64_t j) { return in[j] * by; });
  }
}

template <class T>
void sum(Cpu, Matrix<const T> x, T* y) {
  double total = 0;
  for (int64_t i = 0; i < x.size(); ++i) total += static_cast<double>(x.data[i]);
  *y = static_cast<T>(total);
}

template <class T>
void add_constant(Cpu, const T* value, Matrix<T> dx, OutputMode fold) {
  for (int64_t i = 0; i < dx.size(); ++i) fold_into(dx.data[i], fold, *value);
}

#define FOVEA_INSTANTIATE(T)                                                                     \
  template void apply(Cpu, Function, Matrix<const T>, const Dropout&, Matrix<T>);                \
  template void apply_grad(Cpu, Function, Matrix<const T>, Matrix<const T>, const Dropout&,      \
                           Matrix<T>, OutputMode);                                               \
  template void gate(Cpu, Function, Matrix<const T>, Matrix<const T>, const Dropout&, Matrix<T>, \
                     OutputMode);                                                                \
  template void gate_grad(Cpu, Function, const GateGrad<T>&, const Dropout&);                    \
  template void relu_grad(Cpu, Matrix<const T>, Matrix<const T>, const Dropout&, Matrix<T>,      \
                          OutputMode);                                                           \
  template void residual(Cpu, Matrix<const T>, Matrix<const T>, const Dropout&, Matrix<T>);      \
  template void drop(Cpu, Matrix<const T>, const Dropout&, Matrix<T>, OutputMode);               \
  template void binary(Cpu, Binary, const Broadcast&, const T*, const T*, T*);                   \
  template void binary_grad(Cpu, Binary, const Broadcast&, const T*, const T*, T*);              \
  template void scale(Cpu, Matrix<const T>, double, Matrix<T>, OutputMode);                      \
  template void scale_by(Cpu, Matrix<const T>, const T*, Matrix<T>, OutputMode);                 \
  template void sum(Cpu, Matrix<const T>, T*);                                                   \
  template void add_constant(Cpu, const T*, Matrix<T>, OutputMode);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel

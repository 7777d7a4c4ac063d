#include "ops/recurrent_kernel.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

// Calls body(i) for each row i, in parallel if there is enough work.
template <class Body>
void each_row(int64_t rows, int64_t cols, Body body) {
#pragma omp parallel for schedule(static) if (rows * cols > kWorthThreads)
  for (int64_t i = 0; i < rows; ++i) body(i);
}

}  // namespace

template <class T>
void rnn_step(Cpu, const RecurrentStep<T>& s) {
  const int64_t H = s.h.cols;
  each_row(s.x.rows, H, [&](int64_t i) {
    const T *x = s.x.row(i), *u = s.u.row(i);
    T *h = s.h.row(i), *y = s.y.row(i);
#pragma omp simd
    for (int64_t j = 0; j < H; ++j) {
      const T a = math::tanh(x[j] + u[j]);  // h' = tanh(W x + b + U h)
      h[j] = a;
      y[j] = a;
    }
  });
}

template <class T>
void lstm_step(Cpu, const RecurrentStep<T>& s) {
  const int64_t H = s.h.cols;
  each_row(s.x.rows, 4 * H, [&](int64_t row) {
    const T *x = s.x.row(row), *u = s.u.row(row);
    T *h = s.h.row(row), *c = s.c.row(row), *y = s.y.row(row), *kept = s.kept.row(row);
#pragma omp simd
    for (int64_t j = 0; j < H; ++j) {
      const T i = math::sigmoid(x[j] + u[j]);
      const T f = math::sigmoid(x[H + j] + u[H + j]);
      const T g = math::tanh(x[2 * H + j] + u[2 * H + j]);
      const T o = math::sigmoid(x[3 * H + j] + u[3 * H + j]);
      const T after = f * c[j] + i * g;        // c' = f ∘ c + i ∘ g
      const T hidden = o * math::tanh(after);  // h' = o ∘ tanh(c')
      c[j] = after;
      h[j] = hidden;
      y[j] = hidden;
      y[H + j] = after;
      kept[j] = i;
      kept[H + j] = f;
      kept[2 * H + j] = g;
      kept[3 * H + j] = o;
    }
  });
}

template <class T>
void gru_after_step(Cpu, const RecurrentStep<T>& s) {
  const int64_t H = s.h.cols;
  const T* b_n = s.b_n;
  each_row(s.x.rows, 3 * H, [&](int64_t i) {
    const T *x = s.x.row(i), *u = s.u.row(i);
    T *h = s.h.row(i), *y = s.y.row(i), *kept = s.kept.row(i);
#pragma omp simd
    for (int64_t j = 0; j < H; ++j) {
      const T r = math::sigmoid(x[j] + u[j]);
      const T z = math::sigmoid(x[H + j] + u[H + j]);
      const T v = u[2 * H + j] + b_n[j];
      const T n = math::tanh(x[2 * H + j] + r * v);  // n = tanh(W_n x + b + r ∘ (U_n h + b_n))
      const T after = n + z * (h[j] - n);            // h' = (1 − z) ∘ n + z ∘ h
      h[j] = after;
      y[j] = after;
      kept[j] = r;
      kept[H + j] = z;
      kept[2 * H + j] = n;
      kept[3 * H + j] = v;
    }
  });
}

template <class T>
void gru_reset(Cpu, const RecurrentStep<T>& s, Matrix<T> reset) {
  const int64_t H = s.h.cols;
  each_row(s.x.rows, 2 * H, [&](int64_t i) {
    const T *x = s.x.row(i), *u = s.u.row(i), *h = s.h.row(i);
    T *to = reset.row(i), *kept = s.kept.row(i);
#pragma omp simd
    for (int64_t j = 0; j < H; ++j) {
      const T r = math::sigmoid(x[j] + u[j]);
      kept[j] = r;
      kept[H + j] = math::sigmoid(x[H + j] + u[H + j]);
      to[j] = r * h[j];
    }
  });
}

template <class T>
void gru_step(Cpu, const RecurrentStep<T>& s) {
  const int64_t H = s.h.cols;
  each_row(s.x.rows, H, [&](int64_t i) {
    const T *x = s.x.row(i) + 2 * H, *u = s.u.row(i);
    T *h = s.h.row(i), *y = s.y.row(i), *kept = s.kept.row(i);
#pragma omp simd
    for (int64_t j = 0; j < H; ++j) {
      const T n = math::tanh(x[j] + u[j]);  // n = tanh(W_n x + b + U_n (r ∘ h))
      const T after = n + kept[H + j] * (h[j] - n);
      h[j] = after;
      y[j] = after;
      kept[2 * H + j] = n;
    }
  });
}

template <class T>
void rnn_step_grad(Cpu, const RecurrentStepGrad<T>& s) {
  const int64_t H = s.dh.cols;
  each_row(s.dx.rows, 2 * H, [&](int64_t i) {
    const T *y = s.y.row(i), *dy = s.dy.row(i), *h = s.before.row(i);
    T *dh = s.dh.row(i), *dx = s.dx.row(i), *from = s.from.row(i);
#pragma omp simd
    for (int64_t j = 0; j < H; ++j) {
      dx[j] = (dy[j] + dh[j]) * (1 - y[j] * y[j]);
      dh[j] = 0;
      from[j] = h[j];
    }
  });
}

template <class T>
void lstm_step_grad(Cpu, const RecurrentStepGrad<T>& s) {
  const int64_t H = s.dh.cols;
  each_row(s.dx.rows, 4 * H, [&](int64_t row) {
    const T *y = s.y.row(row), *kept = s.kept.row(row), *dy = s.dy.row(row);
    const T* before = s.before.row(row);
    T *dh = s.dh.row(row), *dc = s.dc.row(row), *dx = s.dx.row(row), *from = s.from.row(row);
#pragma omp simd
    for (int64_t j = 0; j < H; ++j) {
      const T i = kept[j], f = kept[H + j], g = kept[2 * H + j], o = kept[3 * H + j];
      const T t = math::tanh(y[H + j]);
      const T d = dy[j] + dh[j];                            // gradient of h'
      const T e = dy[H + j] + dc[j] + d * o * (1 - t * t);  // gradient of c'
      dx[j] = e * g * i * (1 - i);                          // gradient of i, before σ
      dx[H + j] = e * before[H + j] * f * (1 - f);          // gradient of f, before σ
      dx[2 * H + j] = e * i * (1 - g * g);                  // gradient of g, before tanh
      dx[3 * H + j] = d * t * o * (1 - o);                  // gradient of o, before σ
      dc[j] = e * f;
      dh[j] = 0;
      from[j] = before[j];
    }
  });
}

template <class T>
void gru_after_step_grad(Cpu, const RecurrentStepGrad<T>& s) {
  const int64_t H = s.dh.cols;
  each_row(s.dx.rows, 4 * H, [&](int64_t i) {
    const T *kept = s.kept.row(i), *dy = s.dy.row(i), *h = s.before.row(i);
    T *dh = s.dh.row(i), *dx = s.dx.row(i), *du = s.du.row(i), *from = s.from.row(i);
#pragma omp simd
    for (int64_t j = 0; j < H; ++j) {
      const T r = kept[j], z = kept[H + j], n = kept[2 * H + j], v = kept[3 * H + j];
      const T d = dy[j] + dh[j];               // gradient of h'
      const T dn = d * (1 - z) * (1 - n * n);  // gradient of n, before tanh
      const T dr = dn * v * r * (1 - r);       // gradient of r, before σ
      const T dz = d * (h[j] - n) * z * (1 - z);
      dx[j] = dr;
      dx[H + j] = dz;
      dx[2 * H + j] = dn;
      du[j] = dr;
      du[H + j] = dz;
      du[2 * H + j] = dn * r;
      dh[j] = d * z;
      from[j] = h[j];
    }
  });
}

template <class T>
void gru_step_grad(Cpu, const RecurrentStepGrad<T>& s) {
  const int64_t H = s.dh.cols;
  each_row(s.dx.rows, 2 * H, [&](int64_t i) {
    const T *kept = s.kept.row(i), *dy = s.dy.row(i), *h = s.before.row(i), *dh = s.dh.row(i);
    T *dx = s.dx.row(i), *du = s.du.row(i), *from = s.from.row(i);
#pragma omp simd
    for (int64_t j = 0; j < H; ++j) {
      const T n = kept[2 * H + j];
      const T dn = (dy[j] + dh[j]) * (1 - kept[H + j]) * (1 - n * n);  // gradient of n, before tanh
      dx[2 * H + j] = dn;
      du[j] = dn;
      from[j] = kept[j] * h[j];
    }
  });
}

template <class T>
void gru_reset_grad(Cpu, const RecurrentStepGrad<T>& s, Matrix<const T> dreset) {
  const int64_t H = s.dh.cols;
  each_row(s.dx.rows, 4 * H, [&](int64_t i) {
    const T *kept = s.kept.row(i), *dy = s.dy.row(i), *h = s.before.row(i), *back = dreset.row(i);
    T *dh = s.dh.row(i), *dx = s.dx.row(i), *du = s.du.row(i), *from = s.from.row(i);
#pragma omp simd
    for (int64_t j = 0; j < H; ++j) {
      const T r = kept[j], z = kept[H + j], n = kept[2 * H + j];
      const T d = dy[j] + dh[j];                  // gradient of h'
      const T dr = back[j] * h[j] * r * (1 - r);  // gradient of r, before σ
      const T dz = d * (h[j] - n) * z * (1 - z);
      dx[j] = dr;
      dx[H + j] = dz;
      du[j] = dr;
      du[H + j] = dz;
      dh[j] = d * z + back[j] * r;
      from[j] = h[j];
    }
  });
}

template <class T>
void add_rows(Cpu, Matrix<const T> added, Matrix<T> to) {
  each_row(added.rows, added.cols, [&](int64_t i) {
    const T* from = added.row(i);
    fold_row(to.row(i), added.cols, OutputMode::add, [=](int64_t j) { return from[j]; });
  });
}

#define FOVEA_INSTANTIATE(T)                                                       \
  template void rnn_step(Cpu, const RecurrentStep<T>&);                            \
  template void lstm_step(Cpu, const RecurrentStep<T>&);                           \
  template void gru_after_step(Cpu, const RecurrentStep<T>&);                      \
  template void gru_reset(Cpu, const RecurrentStep<T>&, Matrix<T>);                \
  template void gru_step(Cpu, const RecurrentStep<T>&);                            \
  template void rnn_step_grad(Cpu, const RecurrentStepGrad<T>&);                   \
  template void lstm_step_grad(Cpu, const RecurrentStepGrad<T>&);                  \
  template void gru_after_step_grad(Cpu, const RecurrentStepGrad<T>&);             \
  template void gru_step_grad(Cpu, const RecurrentStepGrad<T>&);                   \
  template void gru_reset_grad(Cpu, const RecurrentStepGrad<T>&, Matrix<const T>); \
  template void add_rows(Cpu, Matrix<const T>, Matrix<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel

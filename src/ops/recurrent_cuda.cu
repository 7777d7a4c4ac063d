#include "ops/recurrent_kernel.h"
#include "tensor/cuda.h"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__device__ void put(float& to, float value) { to = value; }
__device__ void put(bf16& to, float value) { to = to_bf16(value); }

// Calls step(i, j) for element j of the state of sentence i. A step is a struct that reads all its
// inputs before it writes. So no read has to wait for a write to memory that may be the same.
template <class Step>
__global__ void each_unit(Step step, int64_t H) {
  const int64_t j = int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  if (j < H) step(int64_t{blockIdx.x}, j);
}

template <class Step>
void over_units(Cuda on, int64_t rows, int64_t H, const char* name, const Step& step) {
  if (rows == 0 || H == 0) return;
  const int64_t threads = std::min<int64_t>(256, (H + kWarp - 1) / kWarp * kWarp);
  const dim3 blocks(static_cast<unsigned>(rows), blocks_for(H, threads));
  each_unit<<<blocks, static_cast<unsigned>(threads), 0, stream(on)>>>(step, H);
  check_launch(name);
}

struct RnnStep {
  RecurrentStep<float> s;
  __device__ void operator()(int64_t i, int64_t j) const {
    const float a = tanhf(s.x.row(i)[j] + s.u.row(i)[j]);  // h' = tanh(W x + b + U h)
    s.h.row(i)[j] = a;
    s.y.row(i)[j] = a;
    if (s.rounded.data) put(s.rounded.row(i)[j], a);
  }
};

struct LstmStep {
  RecurrentStep<float> s;
  __device__ void operator()(int64_t row, int64_t j) const {
    const int64_t H = s.h.cols;
    const float *x = s.x.row(row) + j, *u = s.u.row(row) + j;
    float *y = s.y.row(row) + j, *kept = s.kept.row(row) + j;
    const float i = sigmoid(x[0] + u[0]), f = sigmoid(x[H] + u[H]);
    const float g = tanhf(x[2 * H] + u[2 * H]), o = sigmoid(x[3 * H] + u[3 * H]);
    const float after = f * s.c.row(row)[j] + i * g;  // c' = f ∘ c + i ∘ g
    const float hidden = o * tanhf(after);            // h' = o ∘ tanh(c')
    s.c.row(row)[j] = after;
    s.h.row(row)[j] = hidden;
    if (s.rounded.data) put(s.rounded.row(row)[j], hidden);
    y[0] = hidden;
    y[H] = after;
    kept[0] = i;
    kept[H] = f;
    kept[2 * H] = g;
    kept[3 * H] = o;
  }
};

struct GruAfterStep {
  RecurrentStep<float> s;
  __device__ void operator()(int64_t i, int64_t j) const {
    const int64_t H = s.h.cols;
    const float *x = s.x.row(i) + j, *u = s.u.row(i) + j;
    float *h = s.h.row(i) + j, *kept = s.kept.row(i) + j;
    const float r = sigmoid(x[0] + u[0]), z = sigmoid(x[H] + u[H]);
    const float v = u[2 * H] + s.b_n[j];
    const float n = tanhf(x[2 * H] + r * v);  // n = tanh(W_n x + b + r ∘ (U_n h + b_n))
    const float after = n + z * (*h - n);     // h' = (1 − z) ∘ n + z ∘ h
    *h = after;
    s.y.row(i)[j] = after;
    if (s.rounded.data) put(s.rounded.row(i)[j], after);
    kept[0] = r;
    kept[H] = z;
    kept[2 * H] = n;
    kept[3 * H] = v;
  }
};

struct GruReset {
  RecurrentStep<float> s;
  Matrix<float> reset;
  __device__ void operator()(int64_t i, int64_t j) const {
    const int64_t H = s.h.cols;
    const float *x = s.x.row(i) + j, *u = s.u.row(i) + j;
    const float h = s.h.row(i)[j];
    const float r = sigmoid(x[0] + u[0]), z = sigmoid(x[H] + u[H]);
    s.kept.row(i)[j] = r;
    s.kept.row(i)[H + j] = z;
    reset.row(i)[j] = r * h;
  }
};

struct GruStep {
  RecurrentStep<float> s;
  __device__ void operator()(int64_t i, int64_t j) const {
    const int64_t H = s.h.cols;
    float *h = s.h.row(i) + j, *kept = s.kept.row(i) + j;
    const float n = tanhf(s.x.row(i)[2 * H + j] + s.u.row(i)[j]);  // tanh(W_n x + b + U_n (r ∘ h))
    const float after = n + kept[H] * (*h - n);
    *h = after;
    s.y.row(i)[j] = after;
    if (s.rounded.data) put(s.rounded.row(i)[j], after);
    kept[2 * H] = n;
  }
};

template <class U>
struct RnnStepGrad {
  RecurrentStepGrad<float, U> s;
  __device__ void operator()(int64_t i, int64_t j) const {
    const float y = s.y.row(i)[j], h = s.before.row(i)[j];
    const float d = (s.dy.row(i)[j] + s.dh.row(i)[j]) * (1 - y * y);
    s.dx.row(i)[j] = d;
    if constexpr (!std::is_same_v<U, float>) put(s.du.row(i)[j], d);
    s.dh.row(i)[j] = 0;
    put(s.from.row(i)[j], h);
  }
};

template <class U>
struct LstmStepGrad {
  RecurrentStepGrad<float, U> s;
  __device__ void operator()(int64_t row, int64_t j) const {
    const int64_t H = s.dh.cols;
    const float *kept = s.kept.row(row) + j, *dy = s.dy.row(row) + j;
    float *dh = s.dh.row(row) + j, *dc = s.dc.row(row) + j, *dx = s.dx.row(row) + j;
    const float i = kept[0], f = kept[H], g = kept[2 * H], o = kept[3 * H];
    const float h = s.before.row(row)[j], c = s.before.row(row)[H + j];
    const float t = tanhf(s.y.row(row)[H + j]);
    const float d = dy[0] + *dh;                        // gradient of h'
    const float e = dy[H] + *dc + d * o * (1 - t * t);  // gradient of c'
    const float gates[] = {e * g * i * (1 - i),         // gradient of i, before σ
                           e * c * f * (1 - f),         // gradient of f, before σ
                           e * i * (1 - g * g),         // gradient of g, before tanh
                           d * t * o * (1 - o)};        // gradient of o, before σ
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      dx[k * H] = gates[k];
      if constexpr (!std::is_same_v<U, float>) put(s.du.row(row)[k * H + j], gates[k]);
    }
    *dc = e * f;
    *dh = 0;
    put(s.from.row(row)[j], h);
  }
};

template <class U>
struct GruAfterStepGrad {
  RecurrentStepGrad<float, U> s;
  __device__ void operator()(int64_t i, int64_t j) const {
    const int64_t H = s.dh.cols;
    const float* kept = s.kept.row(i) + j;
    const float h = s.before.row(i)[j];
    float *dh = s.dh.row(i) + j, *dx = s.dx.row(i) + j;
    U* du = s.du.row(i) + j;
    const float r = kept[0], z = kept[H], n = kept[2 * H], v = kept[3 * H];
    const float d = s.dy.row(i)[j] + *dh;        // gradient of h'
    const float dn = d * (1 - z) * (1 - n * n);  // gradient of n, before tanh
    const float dr = dn * v * r * (1 - r);       // gradient of r, before σ
    const float dz = d * (h - n) * z * (1 - z);
    dx[0] = dr;
    dx[H] = dz;
    dx[2 * H] = dn;
    put(du[0], dr);
    put(du[H], dz);
    put(du[2 * H], dn * r);
    *dh = d * z;
    put(s.from.row(i)[j], h);
  }
};

template <class U>
struct GruStepGrad {
  RecurrentStepGrad<float, U> s;
  __device__ void operator()(int64_t i, int64_t j) const {
    const int64_t H = s.dh.cols;
    const float* kept = s.kept.row(i) + j;
    const float r = kept[0], z = kept[H], n = kept[2 * H], h = s.before.row(i)[j];
    const float dn = (s.dy.row(i)[j] + s.dh.row(i)[j]) * (1 - z) * (1 - n * n);  // before tanh
    s.dx.row(i)[2 * H + j] = dn;
    put(s.du.row(i)[j], dn);
    put(s.from.row(i)[j], r * h);
  }
};

template <class U>
struct GruResetGrad {
  RecurrentStepGrad<float, U> s;
  Matrix<const float> dreset;
  __device__ void operator()(int64_t i, int64_t j) const {
    const int64_t H = s.dh.cols;
    const float* kept = s.kept.row(i) + j;
    const float h = s.before.row(i)[j], back = dreset.row(i)[j];
    float *dh = s.dh.row(i) + j, *dx = s.dx.row(i) + j;
    U* du = s.du.row(i) + j;
    const float r = kept[0], z = kept[H], n = kept[2 * H];
    const float d = s.dy.row(i)[j] + *dh;     // gradient of h'
    const float dr = back * h * r * (1 - r);  // gradient of r, before σ
    const float dz = d * (h - n) * z * (1 - z);
    dx[0] = dr;
    dx[H] = dz;
    put(du[0], dr);
    put(du[H], dz);
    *dh = d * z + back * r;
    put(s.from.row(i)[j], h);
  }
};

struct AddRows {
  Matrix<const float> added;
  Matrix<float> to;
  __device__ void operator()(int64_t i, int64_t j) const { to.row(i)[j] += added.row(i)[j]; }
};

}  // namespace

template <class T>
void rnn_step(Cuda on, const RecurrentStep<T>& s) {
  over_units(on, s.x.rows, s.h.cols, "rnn_step", RnnStep{s});
}
template <class T>
void lstm_step(Cuda on, const RecurrentStep<T>& s) {
  over_units(on, s.x.rows, s.h.cols, "lstm_step", LstmStep{s});
}
template <class T>
void gru_after_step(Cuda on, const RecurrentStep<T>& s) {
  over_units(on, s.x.rows, s.h.cols, "gru_after_step", GruAfterStep{s});
}
template <class T>
void gru_reset(Cuda on, const RecurrentStep<T>& s, Matrix<T> reset) {
  over_units(on, s.x.rows, s.h.cols, "gru_reset", GruReset{s, reset});
}
template <class T>
void gru_step(Cuda on, const RecurrentStep<T>& s) {
  over_units(on, s.x.rows, s.h.cols, "gru_step", GruStep{s});
}

template <class T, class U>
void rnn_step_grad(Cuda on, const RecurrentStepGrad<T, U>& s) {
  over_units(on, s.dx.rows, s.dh.cols, "rnn_step_grad", RnnStepGrad<U>{s});
}
template <class T, class U>
void lstm_step_grad(Cuda on, const RecurrentStepGrad<T, U>& s) {
  over_units(on, s.dx.rows, s.dh.cols, "lstm_step_grad", LstmStepGrad<U>{s});
}
template <class T, class U>
void gru_after_step_grad(Cuda on, const RecurrentStepGrad<T, U>& s) {
  over_units(on, s.dx.rows, s.dh.cols, "gru_after_step_grad", GruAfterStepGrad<U>{s});
}
template <class T, class U>
void gru_step_grad(Cuda on, const RecurrentStepGrad<T, U>& s) {
  over_units(on, s.dx.rows, s.dh.cols, "gru_step_grad", GruStepGrad<U>{s});
}
template <class T, class U>
void gru_reset_grad(Cuda on, const RecurrentStepGrad<T, U>& s, Matrix<const T> dreset) {
  over_units(on, s.dx.rows, s.dh.cols, "gru_reset_grad", GruResetGrad<U>{s, dreset});
}

template <class T>
void add_rows(Cuda on, Matrix<const T> added, Matrix<T> to) {
  over_units(on, added.rows, added.cols, "add_rows", AddRows{added, to});
}

template void rnn_step(Cuda, const RecurrentStep<float>&);
template void lstm_step(Cuda, const RecurrentStep<float>&);
template void gru_after_step(Cuda, const RecurrentStep<float>&);
template void gru_reset(Cuda, const RecurrentStep<float>&, Matrix<float>);
template void gru_step(Cuda, const RecurrentStep<float>&);
#define FOVEA_INSTANTIATE(U)                                                   \
  template void rnn_step_grad(Cuda, const RecurrentStepGrad<float, U>&);       \
  template void lstm_step_grad(Cuda, const RecurrentStepGrad<float, U>&);      \
  template void gru_after_step_grad(Cuda, const RecurrentStepGrad<float, U>&); \
  template void gru_step_grad(Cuda, const RecurrentStepGrad<float, U>&);       \
  template void gru_reset_grad(Cuda, const RecurrentStepGrad<float, U>&, Matrix<const float>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(bf16)
#undef FOVEA_INSTANTIATE
template void add_rows(Cuda, Matrix<const float>, Matrix<float>);

}  // namespace fovea::kernel

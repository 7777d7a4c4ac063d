#pragma once

#include <cstdint>

#include "tensor/device.h"

namespace fovea::kernel {

// One step of Adam (Kingma and Ba, 2015), with the decoupled weight decay of AdamW (Loshchilov and
// Hutter, 2019) where weight_decay is not 0.
struct AdamStep {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  int64_t step = 1;      // k, from 1
  double scale = 1;      // what every gradient is multiplied by first: clipping, 1 / words
  double ema_decay = 0;  // of the moving average of the parameters
};

// What a step reads and changes: n numbers each. `ema` may be absent.
template <class T>
struct AdamBuffers {
  const T* gradient;
  T *value, *m, *v, *ema;
  int64_t n;
};

// g = scale · gradient;  m ← β1 m + (1 − β1) g;  v ← β2 v + (1 − β2) g²
// p ← p (1 − lr · weight_decay) − lr · (m / (1 − β1ᵏ)) / (√(v / (1 − β2ᵏ)) + eps)
// ema ← decay · ema + (1 − decay) p
template <class T>
void adam(Cpu, const AdamStep& step, const AdamBuffers<T>& b);
template <class T>
void adam(Cuda, const AdamStep& step, const AdamBuffers<T>& b);

// Σ x², summed in double in one order whatever the number of threads.
template <class T>
double sum_of_squares(Cpu, const T* x, int64_t n);
template <class T>
double sum_of_squares(Cuda, const T* x, int64_t n);

// The first i where x[i] is infinite or no number, n if there is none.
template <class T>
int64_t first_not_finite(Cpu, const T* x, int64_t n);
template <class T>
int64_t first_not_finite(Cuda, const T* x, int64_t n);

}  // namespace fovea::kernel

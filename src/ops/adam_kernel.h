#pragma once

#include <cstdint>

#include "tensor/device.h"

namespace fovea::kernel {

// The options of one step of Adam (Kingma and Ba, 2015). If weight_decay is not 0, the step applies
// the decoupled weight decay of AdamW (Loshchilov and Hutter, 2019).
struct AdamStep {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  int64_t step = 1;      // number of this step, counted from 1: k in the equations below
  double scale = 1;      // every gradient is multiplied by it first: 1 / number of words
  double clip = 0;       // maximum norm of the scaled gradient; 0: no limit
  double ema_decay = 0;  // decay of the moving average of the parameters
};

// The arrays that a step reads and changes, with n numbers each. `ema` may be absent. Weight decay
// applies to value i if decayed[i] is 1 or `decayed` is absent.
template <class T>
struct AdamBuffers {
  const T* gradient;
  T *value, *m, *v, *ema;
  int64_t n;
  const uint8_t* decayed = nullptr;
};

// norm ← ‖gradient‖, summed in double. The order of the sum does not depend on the number of
// threads. If the norm and *loss (if given) are finite:
//   g = scale · min(1, clip / (scale · norm + 1e-6)) · gradient
//   m ← β1 m + (1 − β1) g;  v ← β2 v + (1 − β2) g²
//   p ← p (1 − lr · weight_decay · decayed) − lr · (m / (1 − β1ᵏ)) / (√(v / (1 − β2ᵏ)) + eps)
//   ema ← decay · ema + (1 − decay) p
// Otherwise only `norm` changes. All arguments are in the memory of the device.
template <class T>
void adam(Cpu, const AdamStep* step, const T* loss, const AdamBuffers<T>& b, T* norm);
template <class T>
void adam(Cuda, const AdamStep* step, const T* loss, const AdamBuffers<T>& b, T* norm);

// The index of the first entry of x that is infinite or NaN; n if all entries are finite.
template <class T>
int64_t first_not_finite(Cpu, const T* x, int64_t n);
template <class T>
int64_t first_not_finite(Cuda, const T* x, int64_t n);

}  // namespace fovea::kernel

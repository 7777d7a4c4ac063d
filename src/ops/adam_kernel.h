#pragma once

#include <cstdint>

#include "tensor/device.h"

namespace fovea::kernel {

// One step of Adam (Kingma and Ba, 2015), with the decoupled weight decay of AdamW (Loshchilov and
// Hutter, 2019) where weight_decay is not 0.
struct AdamStep {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  int64_t step = 1;      // k, from 1
  double scale = 1;      // what every gradient is multiplied by first: 1 / words
  double clip = 0;       // largest norm of what that gives; 0: any
  double ema_decay = 0;  // of the moving average of the parameters
};

// What a step reads and changes: n numbers each. `ema` may be absent. `decayed` tells with 1 or 0
// which values have weight decay; if it is absent, all have.
template <class T>
struct AdamBuffers {
  const T* gradient;
  T *value, *m, *v, *ema;
  int64_t n;
  const uint8_t* decayed = nullptr;
};

// norm ← ‖gradient‖, summed in double in one order whatever the number of threads. Where it and
// *loss, if one is given, are finite:
//   g = scale · min(1, clip / (scale · norm + 1e-6)) · gradient
//   m ← β1 m + (1 − β1) g;  v ← β2 v + (1 − β2) g²
//   p ← p (1 − lr · weight_decay · decayed) − lr · (m / (1 − β1ᵏ)) / (√(v / (1 − β2ᵏ)) + eps)
//   ema ← decay · ema + (1 − decay) p
// Otherwise nothing else changes. All of it lies on the device.
template <class T>
void adam(Cpu, const AdamStep* step, const T* loss, const AdamBuffers<T>& b, T* norm);
template <class T>
void adam(Cuda, const AdamStep* step, const T* loss, const AdamBuffers<T>& b, T* norm);

// The first i where x[i] is infinite or no number, n if there is none.
template <class T>
int64_t first_not_finite(Cpu, const T* x, int64_t n);
template <class T>
int64_t first_not_finite(Cuda, const T* x, int64_t n);

}  // namespace fovea::kernel

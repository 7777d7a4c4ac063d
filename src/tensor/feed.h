#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// The integers that a step reads from its batch, such as word ids and offsets. Their addresses
// depend only on their numbers of elements. So a graph that was captured for one batch can be
// replayed for the next batch: it then reads the integers of that batch. One copy sends all
// integers to the device.
class BatchInputs {
 public:
  explicit BatchInputs(Device device);

  // While a Scope exists on this thread, Tensor::of() of integers on this device returns a window,
  // that is, a tensor in the memory of the BatchInputs. The integers are in the windows only after
  // send(). The constructor of Scope discards all earlier integers.
  class Scope {
   public:
    explicit Scope(BatchInputs& feed);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    BatchInputs* outer_;
  };

  void send() const;
  const std::vector<int64_t>& sizes() const { return sizes_; }  // elements per window
  bool overflowed() const {
    return overflowed_;
  }  // true: some integers did not fit and have tensors of their own

  // For Tensor::of(): returns a window for these values. If there is no Scope for the device or the
  // values do not fit, returns an absent tensor.
  static Tensor window_with(std::span<const int32_t> values, Device device);

 private:
  Tensor all_;
  std::vector<int32_t> numbers_;
  std::vector<int64_t> sizes_;
  bool overflowed_ = false;
};

}  // namespace fovea

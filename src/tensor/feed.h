#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// The word ids, offsets and other integers that a step reads from its batch. Their addresses depend
// only on the sizes. A graph that was captured for one batch therefore reads the numbers of the
// next batch when it is replayed. One copy sends all numbers to the device.
class BatchInputs {
 public:
  explicit BatchInputs(Device device);

  // While a Scope exists on this thread, Tensor::of() of integers on this device returns a window
  // on the memory of the BatchInputs. The windows have their numbers only after send(). The
  // constructor of Scope discards the earlier numbers.
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
  const std::vector<int64_t>& sizes() const { return sizes_; }  // of the windows
  bool overflowed() const {
    return overflowed_;
  }  // true: some numbers did not fit and have their own tensors

  // For Tensor::of(): a window with these numbers. Returns an absent tensor if there is no Scope
  // for the device, or if the numbers do not fit.
  static Tensor window_with(std::span<const int32_t> values, Device device);

 private:
  Tensor all_;
  std::vector<int32_t> numbers_;
  std::vector<int64_t> sizes_;
  bool overflowed_ = false;
};

}  // namespace fovea

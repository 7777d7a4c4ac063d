#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// Where a step finds the word ids, offsets and other whole numbers of its batch: at places that
// depend on how many there are alone, so that a graph which read those of one batch reads those of
// the next when it is replayed. They go to the device in one copy.
class Feed {
 public:
  explicit Feed(Device device);

  // While one lives, what Tensor::of() makes of whole numbers on the feed's device is a window on
  // the feed; it holds the numbers after send(). What was fed before is forgotten.
  class Scope {
   public:
    explicit Scope(Feed& feed);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Feed* outer_;
  };

  void send() const;
  const std::vector<int64_t>& sizes() const { return sizes_; }  // of the windows, in their order
  bool overflowed() const { return overflowed_; }  // some numbers found no room and lie elsewhere

  // For Tensor::of(): a window with these numbers, or an absent tensor.
  static Tensor window_with(std::span<const int32_t> values, Device device);

 private:
  Tensor all_;
  std::vector<int32_t> numbers_;
  std::vector<int64_t> sizes_;
  bool overflowed_ = false;
};

}  // namespace fovea

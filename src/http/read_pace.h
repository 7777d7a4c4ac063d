#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace fovea {

// A limiter of the reads of a connection. Each read takes some microseconds of the I/O thread,
// even for one byte. A client that sent a request of 16 KiB in 16,384 parts could delay others by a
// hundred milliseconds. So a fixed number of reads is free, and received bytes permit more. Each
// further read waits longer than the previous one: n extra reads take 2n² ms.
class ReadPace {
 public:
  static constexpr size_t kFree = 32;
  static constexpr size_t kEarns =
      12 << 10;  // bytes per permitted read; less than the maximum of a read
  static constexpr std::chrono::milliseconds kStep{4};

  void count(size_t bytes) {
    ++reads_;
    bytes_ += bytes;
  }
  std::chrono::milliseconds wait() const {
    const size_t paid = std::min(reads_, kFree + bytes_ / kEarns);
    return kStep * static_cast<int64_t>(reads_ - paid);
  }

 private:
  size_t reads_ = 0, bytes_ = 0;
};

}  // namespace fovea

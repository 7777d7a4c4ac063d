#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace fovea {

// How long a connection waits before it reads on. Each read costs the server's thread some
// microseconds, however few bytes it brings, so that a client could send a request of 16 KiB in
// 16,384 parts and cost others a hundred milliseconds. Some reads are free, and the bytes of a
// request earn more. Beyond these each wait is longer than the last: n extra reads take 2n² ms.
class Pace {
 public:
  static constexpr size_t kFree = 32;
  static constexpr size_t kEarns = 12 << 10;  // bytes for a read; less than what one reads at most
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

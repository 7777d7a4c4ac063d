#include "tensor/feed.h"

namespace fovea {
namespace {

constexpr int64_t kMost = 4 << 20;  // numbers: batches that have more gain nothing from graphs
constexpr size_t kApart = 64;       // windows begin at multiples of so many

thread_local Feed* live = nullptr;

}  // namespace

Feed::Feed(Device device) : all_({kMost}, Type::i32, device) {}

Feed::Scope::Scope(Feed& feed) : outer_(live) {
  live = &feed;
  feed.numbers_.clear();
  feed.sizes_.clear();
  feed.overflowed_ = false;
}
Feed::Scope::~Scope() { live = outer_; }

Tensor Feed::window_with(std::span<const int32_t> values, Device device) {
  if (!live || live->all_.device() != device) return {};
  std::vector<int32_t>& numbers = live->numbers_;
  const size_t at = (numbers.size() + kApart - 1) / kApart * kApart;
  live->sizes_.push_back(std::ssize(values));
  if (at + values.size() > static_cast<size_t>(kMost)) {
    live->overflowed_ = true;
    return {};
  }
  numbers.resize(at, 0);
  numbers.insert(numbers.end(), values.begin(), values.end());
  return live->all_.window(static_cast<int64_t>(at), std::ssize(values));
}

void Feed::send() const {
  const Tensor used = all_.window(0, std::ssize(numbers_));
  used.assign_bytes(std::as_bytes(std::span(numbers_)));
}

}  // namespace fovea

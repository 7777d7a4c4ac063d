#include "tensor/feed.h"

namespace fovea {
namespace {

constexpr int64_t kCapacity = 4 << 20;  // in integers; larger batches gain nothing from graphs
constexpr size_t kAlignedNumbers = 64;  // a window begins at a multiple of this number of integers

thread_local BatchInputs* active = nullptr;

}  // namespace

BatchInputs::BatchInputs(Device device) : all_({kCapacity}, ElementType::i32, device) {}

BatchInputs::Scope::Scope(BatchInputs& feed) : outer_(active) {
  active = &feed;
  feed.numbers_.clear();
  feed.sizes_.clear();
  feed.overflowed_ = false;
}
BatchInputs::Scope::~Scope() { active = outer_; }

Tensor BatchInputs::window_with(std::span<const int32_t> values, Device device) {
  if (!active || active->all_.device() != device) return {};
  std::vector<int32_t>& numbers = active->numbers_;
  const size_t at = (numbers.size() + kAlignedNumbers - 1) / kAlignedNumbers * kAlignedNumbers;
  active->sizes_.push_back(std::ssize(values));
  if (at + values.size() > static_cast<size_t>(kCapacity)) {
    active->overflowed_ = true;
    return {};
  }
  numbers.resize(at, 0);
  numbers.insert(numbers.end(), values.begin(), values.end());
  return active->all_.window(static_cast<int64_t>(at), std::ssize(values));
}

void BatchInputs::send() const {
  const Tensor used = all_.window(0, std::ssize(numbers_));
  used.assign_bytes(std::as_bytes(std::span(numbers_)));
}

}  // namespace fovea

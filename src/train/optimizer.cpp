#include "train/optimizer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/adam_kernel.h"

namespace fovea {

void OptimizerOptions::describe(Settings& s) {
  s.field("beta1", beta1, "Adam: decay of the mean of gradients").between(0, 0.999999);
  s.field("beta2", beta2, "Adam: decay of the mean of squared gradients").between(0, 0.999999);
  s.field("eps", eps, "Adam: added to the square root").above(0);
  s.field("weight_decay", weight_decay,
          "decoupled weight decay of matrices, not of biases and norms; more than 0: AdamW")
      .between(0, 1);
  s.field("clip", clip, "largest norm of the gradient per word; 0: no limit").at_least(0);
  s.field("ema", ema,
          "decay of a moving average of the weights, lower in the first updates; 0: none")
      .between(0, 0.999999);
}

Optimizer::Optimizer(ParameterStore& store, const OptimizerOptions& options)
    : store_(store), options_(options) {
  const Tensor values = store.values();
  m_ = Tensor::zeros(values.shape(), values.type(), values.device());
  v_ = Tensor::zeros(values.shape(), values.type(), values.device());
  if (options.ema > 0) {
    ema_ = Tensor::like(values);
    ema_.copy_from(values);
  }
  if (options.weight_decay > 0) mark_decayed();
}

void Optimizer::mark_decayed() {
  std::vector<int32_t> words(static_cast<size_t>((store_.size() + 3) / 4));
  auto* bytes = reinterpret_cast<uint8_t*>(words.data());
  for (const ParameterStore::Parameter& p : store_.all())
    if (p.tensor.shape().size() > 1) std::memset(bytes + p.offset, 1, p.tensor.elements());
  decayed_ = Tensor::of(words, store_.device());
}

void Optimizer::freeze(std::vector<StoreRange> ranges) {
  frozen_ = std::move(ranges);
  if (frozen_.empty()) return;
  int64_t size = 0;
  for (const StoreRange& s : frozen_) size += s.size;
  const Tensor values = store_.values();
  kept_ = Tensor({size}, values.type(), values.device());
  for_each_frozen([&](const StoreRange& s, int64_t at) {
    kept_.window(at, s.size).copy_from(values.window(s.begin, s.size));
  });
}

// Calls each(range, offset of its values in kept_) for every frozen range.
void Optimizer::for_each_frozen(
    const std::function<void(const StoreRange& range, int64_t at)>& each) const {
  int64_t at = 0;
  for (const StoreRange& s : frozen_) {
    each(s, at);
    at += s.size;
  }
}

void Optimizer::clear_frozen_gradients() const {
  const Tensor gradients = store_.gradients();
  for (const StoreRange& s : frozen_) gradients.window(s.begin, s.size).fill(0);
}

void Optimizer::put_back_frozen(const Tensor& flat) const {
  if (!flat) return;
  for_each_frozen([&](const StoreRange& s, int64_t at) {
    flat.window(s.begin, s.size).copy_from(kept_.window(at, s.size));
  });
}

double Optimizer::update(const UpdateScale& u) {
  const Tensor norm({1}, store_.type(), store_.device());
  update(note(u), {}, norm);
  return norm.values()[0];
}

// Returns the parameters of an update as the bytes of a kernel::AdamStep.
Tensor Optimizer::note(const UpdateScale& u) const {
  const auto t = static_cast<double>(u.step);
  const kernel::AdamStep adam{.lr = u.lr,
                              .beta1 = options_.beta1,
                              .beta2 = options_.beta2,
                              .eps = options_.eps,
                              .weight_decay = options_.weight_decay,
                              .step = u.step,
                              .scale = u.scale,
                              .clip = options_.clip,
                              .ema_decay = std::min(options_.ema, (1 + t) / (10 + t))};
  std::array<int32_t, sizeof(adam) / sizeof(int32_t)> words;
  std::memcpy(words.data(), &adam, sizeof(adam));
  return Tensor::of(words, store_.device());
}

void Optimizer::update(const Tensor& noted, const Tensor& loss, const Tensor& norm) {
  clear_frozen_gradients();
  const Tensor g = store_.gradients(), p = store_.values();
  const auto* decayed =
      decayed_ ? reinterpret_cast<const uint8_t*>(decayed_.data<int32_t>()) : nullptr;
  run(p, [&]<class T>(auto on, T) {
    const kernel::AdamBuffers<T> all{.gradient = g.data<T>(),
                                     .value = p.data<T>(),
                                     .m = m_.data<T>(),
                                     .v = v_.data<T>(),
                                     .ema = ema_.data<T>(),
                                     .n = p.elements(),
                                     .decayed = decayed};
    const auto* step = reinterpret_cast<const kernel::AdamStep*>(noted.data<int32_t>());
    kernel::adam(on, step, loss.data<T>(), all, norm.data<T>());
  });
  put_back_frozen(p);
  put_back_frozen(ema_);
  parameters_changed();
}

BorrowedValues::BorrowedValues(const ParameterStore& store, const Tensor& other,
                               std::function<void()> changed)
    : values_(store.values()), changed_(std::move(changed)) {
  if (!other) return;
  own_ = Tensor::like(values_);
  own_.copy_from(values_);
  values_.copy_from(other);
  changed_();
}

BorrowedValues::~BorrowedValues() {
  if (!own_) return;
  values_.copy_from(own_);
  changed_();
}

const ParameterStore::Parameter* first_not_finite(const ParameterStore& store, const Tensor& flat) {
  int64_t at = flat.elements();
  run(flat, [&]<class T>(auto on, T) {
    at = kernel::first_not_finite(on, flat.data<T>(), flat.elements());
  });
  if (at == flat.elements()) return nullptr;
  const auto& all = store.all();
  const auto after = std::upper_bound(all.begin(), all.end(), at,
                                      [](int64_t i, const auto& p) { return i < p.offset; });
  return &*(after - 1);
}

}  // namespace fovea

#include "models/low_rank_adapter.h"

#include <cmath>

#include "gemm/gemm.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"

namespace fovea {
namespace {

using kernel::Transposition;

// A matrix inside a flat tensor, as a plain tensor. Products do not store packed copies of it.
Tensor matrix_in(const Tensor& flat, int64_t offset, int64_t rows, int64_t cols) {
  return flat.window(offset, rows * cols).view({rows, cols});
}

}  // namespace

LowRankAdapter::LowRankAdapter(const ParameterStore& model, const std::vector<std::string>& targets,
                               const AdapterSize& size)
    : model_(model), store_(model.type(), model.device()), rank_(size.rank),
      scale_(size.alpha / static_cast<double>(size.rank)) {
  for (const std::string& name : targets) {
    const ParameterStore::Parameter* w = model.find(name);
    assert(w && w->tensor.rank() == 2);
    const int64_t out = w->tensor.size(0), in = w->tensor.size(1);
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    targets_.push_back({out, in, w->offset, store_.size(), 0});
    store_.declare(name + "/A", {rank_, in}, {ParameterInit::Kind::uniform, bound});
  }
  a_size_ = store_.size();
  for (size_t i = 0; i < targets.size(); ++i) {
    targets_[i].b = store_.size() - a_size_;
    store_.declare(targets[i] + "/B", {targets_[i].out, rank_}, ParameterInit::constant(0));
  }
}

Tensor LowRankAdapter::a_of(const Target& t, const Tensor& flat) const {
  return matrix_in(flat, t.a, rank_, t.in);
}

Tensor LowRankAdapter::b_of(const Target& t, const Tensor& flat) const {
  return matrix_in(flat, t.b, t.out, rank_);
}

void LowRankAdapter::keep_base() {
  base_ = Tensor::like(model_.values());
  base_.copy_from(model_.values());
}

void LowRankAdapter::merge(const Dropout& dropout) const {
  const Tensor values = store_.values();
  const Tensor a = dropout.on() ? dropped(flat_a(values), dropout) : flat_a(values);
  const Tensor b = flat_b(values) * scale_;
  if (base_) model_.values().copy_from(base_);
  for (const Target& t : targets_)
    multiply({b_of(t, b), Transposition::as_is, a_of(t, a), Transposition::as_is},
             matrix_in(model_.values(), t.w, t.out, t.in), {}, OutputMode::add);  // W += s B A
  parameters_changed();
}

void LowRankAdapter::add_gradients(const Dropout& dropout) const {
  const Tensor values = store_.values(), gradients = store_.gradients();
  const Tensor masked = dropout.on() ? dropped(flat_a(values), dropout) : flat_a(values);
  const Tensor a = masked * scale_, b = flat_b(values) * scale_;
  const Tensor da =
      dropout.on() ? Tensor::zeros({a_size_}, values.type(), values.device()) : flat_a(gradients);
  for (const Target& t : targets_) {
    const Tensor dw = matrix_in(model_.gradients(), t.w, t.out, t.in);
    multiply({b_of(t, b), Transposition::transposed, dw, Transposition::as_is}, a_of(t, da), {},
             OutputMode::add);  // dA = s Bᵀ dW'
    multiply({dw, Transposition::as_is, a_of(t, a), Transposition::transposed},
             b_of(t, flat_b(gradients)), {}, OutputMode::add);  // dB = s dW' Aᵀ
  }
  if (dropout.on()) flat_a(gradients).copy_from(flat_a(gradients) + dropped(da, dropout));
}

}  // namespace fovea

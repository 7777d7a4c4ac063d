#include <cmath>

#include "gemm/gemm.h"
#include "ops/matmul.h"
#include "support/parity.h"
#include "tensor/rounding.h"

namespace fovea::parity {

Trial::Trial(uint64_t seed, int64_t number, Place place)
    : place_(place), number_(number), random_(seed, static_cast<uint64_t>(number)),
      store_(std::make_shared<ParameterStore>(place.type, place.device)) {}

std::vector<double> Trial::drawn(const Shape& shape, double scale, double middle) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& v : values) {  // the sum of two uniform numbers: large shapes need many, fast
    const double sum = (random_.bits32() + static_cast<double>(random_.bits32())) * 0x1p-32;
    v = static_cast<float>(middle + scale * std::sqrt(6.0) * (sum - 1));
  }
  return values;
}

Tensor Trial::numbers(Shape shape, std::vector<double> values) const {
  for (double& v : values) v = static_cast<float>(v);
  Tensor x = Tensor::of(std::move(shape), values, place_.type, place_.device);
  RoundingNoise::change(x);
  return x;
}

Tensor Trial::constant(Shape shape, double scale, double middle) {
  const std::vector<double> values = drawn(shape, scale, middle);
  return numbers(std::move(shape), values);
}

// The gradient at the start is not compared: it would hide a small gradient.
void Trial::add_leaf(const std::string& name, const Tensor& x) {
  leaves_.push_back({name, x, {}});
  if (x.slot()->holds()) leaves_.back().start = x.slot()->value().values();
}

Tensor Trial::input(Shape shape, double scale, double middle) {
  Tensor x = constant(std::move(shape), scale, middle);
  x.track();
  if (adds())
    x.slot()->gather([&](const Tensor& dx, OutputMode) { dx.assign(drawn(x.shape(), 1, 0)); });
  add_leaf("x" + std::to_string(leaves_.size()), x);
  return x;
}

Tensor Trial::integers(std::span<const int32_t> values) const {
  return Tensor::of(values, place_.device);
}

Tensor Trial::integers_below(int64_t count, int64_t below, int64_t from) {
  std::vector<int32_t> values(static_cast<size_t>(count));
  for (int32_t& v : values)
    v = static_cast<int32_t>(from +
                             static_cast<int64_t>(random_.below(static_cast<uint64_t>(below))));
  return integers(values);
}

Dropout Trial::dropout(double rate) {
  return {static_cast<float>(rate), 0x5eed, static_cast<uint32_t>(number_), ++dropouts_};
}

std::vector<int32_t> Trial::lengths(int64_t sentences, int64_t longest) {
  std::vector<int32_t> each(static_cast<size_t>(sentences));
  for (int32_t& n : each)
    n = 1 + static_cast<int32_t>(random_.below(static_cast<uint64_t>(longest)));
  if (!each.empty()) each[random_.below(each.size())] = static_cast<int32_t>(longest);
  return each;
}

std::vector<int32_t> Trial::offsets(std::span<const int32_t> lengths) {
  std::vector<int32_t> all{0};
  for (const int32_t n : lengths) all.push_back(all.back() + n);
  return all;
}

SentenceOffsets Trial::packing(std::span<const int32_t> lengths) const {
  return SentenceOffsets::of(offsets(lengths), place_.device);
}

RaggedQueries Trial::lookup(int64_t sentences, int64_t longest, int64_t queries) {
  const SentenceOffsets memory = packing(lengths(sentences, longest));
  return {memory, integers_below(queries, sentences)};
}

ColumnRanges Trial::late(const RaggedQueries& look) {
  const std::vector<double> lengths = look.lengths().values();
  std::vector<int32_t> low;
  for (const double n : lengths)
    low.push_back(static_cast<int32_t>(random_.below(static_cast<uint64_t>(n) + 1)));
  return {integers(low), look.lengths()};
}

void Trial::ready(ParameterStore& store) {
  store.allocate(1);
  for (const auto& p : store.all()) {
    std::vector<double> values = p.tensor.values();
    const bool bias = p.init.kind == ParameterInit::Kind::constant && p.tensor.elements() > 1;
    for (double& v : values) v = static_cast<float>(bias ? v + 0.3 * random_.normal() : v);
    p.tensor.assign(values);
    RoundingNoise::change(p.tensor);
  }
  parameters_changed();
  store.allocate_gradients();
  if (adds()) store.gradients().assign(drawn(store.gradients().shape(), 0.01, 0));
  for (const auto& p : store.all()) add_leaf(p.name, p.tensor);
}

const Model& Trial::model(const ModelConfig& config) {
  std::shared_ptr<Model> model = declare_model(config, place_.type, place_.device);
  ready(model->parameters());
  kept_.push_back(model);
  return *model;
}

void Trial::expect(const std::string& name, const Tensor& found) {
  expect_value(name, found);
  if (found.needs_grad()) roots_.emplace_back(name, found);
}
void Trial::expect_value(const std::string& name, const Tensor& found) {
  results_.push_back({name, Result::Kind::value, found.values()});
}
void Trial::expect_integers(const std::string& name, const Tensor& found) {
  results_.push_back({name, Result::Kind::integers, found.values()});
}
void Trial::expect_numbers(const std::string& name, std::vector<double> found) {
  results_.push_back({name, Result::Kind::value, std::move(found)});
}

void Trial::go_back(Tape& tape) {
  for (size_t i = 0; i < roots_.size(); ++i) {
    const Tensor& y = roots_[i].second;
    // Not centred at 0, so that sums are not 0; rounded if y is.
    const Tensor seed = as_factor(numbers(y.shape(), drawn(y.shape(), 1, 0.5)), y);
    if (i + 1 < roots_.size())
      y.slot()->gather([&](const Tensor& dy, OutputMode) { dy.copy_from(seed); });
    else
      tape.backward(y, seed);  // for all roots: it processes every slot that holds a gradient
  }
  for (const Leaf& leaf : leaves_) {
    std::vector<double> values(static_cast<size_t>(leaf.x.elements()), 0.0);
    if (leaf.x.slot()->holds()) values = leaf.x.slot()->value().values();
    for (size_t i = 0; i < leaf.start.size(); ++i) values[i] -= leaf.start[i];
    results_.push_back({"d" + leaf.name, Result::Kind::gradient, std::move(values)});
  }
}

}  // namespace fovea::parity

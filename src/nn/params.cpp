#include "nn/params.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "ops/matmul.h"

namespace fovea {
namespace {

uint64_t hash_of(const std::string& name) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325u;
  for (const unsigned char c : name) h = (h ^ c) * 0x100000001b3u;
  return h;
}

std::vector<double> initial_values(const ParameterStore::Parameter& p, uint64_t seed) {
  std::vector<double> values(static_cast<size_t>(p.tensor.elements()), p.init.scale);
  Random random(seed, hash_of(p.name));
  if (p.init.kind == ParameterInit::Kind::uniform)
    for (double& v : values) v = p.init.scale * (2 * random.uniform() - 1);
  if (p.init.kind == ParameterInit::Kind::normal)
    for (double& v : values) v = p.init.scale * random.normal();
  return values;
}

}  // namespace

ParameterInit ParameterInit::glorot(int64_t in, int64_t out) {
  return {Kind::uniform, std::sqrt(6.0 / static_cast<double>(in + out))};
}

Tensor ParameterStore::declare(const std::string& name, Shape shape, ParameterInit init) {
  assert(!values_ && !find(name));
  Tensor tensor = Tensor::declared(std::move(shape), type_, device_);
  parameters_.push_back({name, tensor, init, size_});
  size_ += tensor.elements();
  return tensor;
}

Tensor ParameterStore::declare_words(const std::string& name, int64_t words, int64_t size) {
  const double deviation = 1 / std::sqrt(static_cast<double>(size));
  return declare(name, {words, size}, ParameterInit::normal(deviation));
}

Tensor ParameterStore::stack(const std::vector<Tensor>& parts) {
  const auto first = std::ranges::find_if(
      parameters_, [&](const Parameter& p) { return &p.tensor.shape() == &parts.front().shape(); });
  assert(first != parameters_.end());
  Shape shape = parts.front().shape();
  shape[0] = 0;
  for (const Tensor& part : parts) shape[0] += part.size(0);
  Tensor tensor = Tensor::declared(shape, type_, device_);
  stacks_.push_back({tensor, first->offset});
  return tensor;
}

void ParameterStore::place() {
  parameters_changed();  // caches may hold addresses of the previous parameters
  values_ = Tensor({size_}, type_, device_);
  auto put = [&](const Tensor& t, int64_t offset) {
    t.place(values_.buffer(), offset);
    t.mark_parameter(values_);
  };
  for (const Parameter& p : parameters_) put(p.tensor, p.offset);
  for (const Stack& s : stacks_) put(s.tensor, s.offset);
}

void ParameterStore::allocate(uint64_t seed) {
  place();
  for (const Parameter& p : parameters_) p.tensor.assign(initial_values(p, seed));
}

void ParameterStore::allocate_gradients() {
  allocate_gradients([](const Parameter&) { return true; });
}

void ParameterStore::allocate_gradients(const std::function<bool(const Parameter&)>& wanted) {
  gradients_ = Tensor::zeros({size_}, type_, device_);
  auto bind = [&](const Tensor& t, int64_t offset) {
    t.bind_gradient({t.shape(), type_, device_, gradients_.buffer(), offset});
  };
  std::vector<bool> bound;
  for (const Parameter& p : parameters_)
    if (bound.push_back(wanted(p)); bound.back()) bind(p.tensor, p.offset);
  for (const Stack& s : stacks_) {
    const int64_t end = s.offset + s.tensor.elements();
    bool any = false;
    for (size_t i = 0; i < parameters_.size(); ++i)
      any = any || (bound[i] && parameters_[i].offset >= s.offset && parameters_[i].offset < end);
    if (any) bind(s.tensor, s.offset);
  }
}

const ParameterStore::Parameter* ParameterStore::find(const std::string& name) const {
  const auto at = std::ranges::find(parameters_, name, &Parameter::name);
  return at == parameters_.end() ? nullptr : &*at;
}

}  // namespace fovea

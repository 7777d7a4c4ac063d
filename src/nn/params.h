#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// How the values of a parameter are initialized.
struct ParameterInit {
  enum class Kind { constant, uniform, normal } kind = Kind::constant;
  double scale = 0;  // the constant, the bound, or the standard deviation: depends on `kind`

  static ParameterInit constant(double value) { return {Kind::constant, value}; }
  static ParameterInit glorot(int64_t in, int64_t out);  // uniform in ±√(6 / (in + out))
  static ParameterInit normal(double deviation) { return {Kind::normal, deviation}; }
};

// A store that keeps all parameters of a model in one buffer, in the order of their declaration. If
// gradients are allocated, they are in a second buffer with the same layout. The name of a
// parameter is the path of its member in the model (`encoder/layers/3/attend/W_Q`).
//
// A model declares its parameters in its constructor. After that, the caller allocates their memory
// by place() or allocate().
class ParameterStore {
 public:
  struct Parameter {
    std::string name;
    Tensor tensor;
    ParameterInit init;
    int64_t offset;  // index of the first element in values()
  };

  explicit ParameterStore(ElementType type = ElementType::f32, Device device = Cpu{})
      : type_(type), device_(device) {}

  Tensor declare(const std::string& name, Shape shape, ParameterInit init);
  // Declares word embeddings [words, size], initialized with standard deviation 1 / √size.
  Tensor declare_words(const std::string& name, int64_t words, int64_t size);
  // Returns one tensor that covers several parameters, stacked along axis 0. REQUIRES: the
  // parameters were declared directly one after another.
  Tensor stack(const std::vector<Tensor>& parts);

  void place();  // allocates memory for all parameters; their values are not set
  // Allocates and initializes all parameters. The values depend only on the seed and the
  // parameter's name.
  void allocate(uint64_t seed);
  void allocate_gradients();  // all 0; backward passes add to gradients()
  // The same, but only the parameters that `wanted` accepts, and stacks with one of them, receive
  // gradients. Backward passes omit the others.
  void allocate_gradients(const std::function<bool(const Parameter&)>& wanted);

  const std::vector<Parameter>& all() const { return parameters_; }
  const Parameter* find(const std::string& name) const;
  int64_t size() const { return size_; }
  ElementType type() const { return type_; }
  Device device() const { return device_; }
  Tensor values() const { return values_; }        // [size]
  Tensor gradients() const { return gradients_; }  // [size]

 private:
  struct Stack {
    Tensor tensor;
    int64_t offset;
  };
  ElementType type_;
  Device device_;
  std::vector<Parameter> parameters_;
  std::vector<Stack> stacks_;
  int64_t size_ = 0;
  Tensor values_, gradients_;
};

// A path of names in the store. A layer declares its parameters under this path: `scope / "attend"
// / "W_Q"`.
struct ParameterScope {
  ParameterStore& store;
  std::string path;

  ParameterScope operator/(const std::string& name) const {
    return {store, path.empty() ? name : path + "/" + name};
  }
  ParameterScope operator/(int64_t index) const { return *this / std::to_string(index); }
  Tensor declare(const std::string& name, Shape shape, ParameterInit init) const {
    return store.declare((*this / name).path, std::move(shape), init);
  }
};

}  // namespace fovea

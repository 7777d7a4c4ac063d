#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// How a parameter starts.
struct Init {
  enum class Kind { constant, uniform, normal } kind = Kind::constant;
  double scale = 0;  // the constant, the bound, or the standard deviation

  static Init constant(double value) { return {Kind::constant, value}; }
  static Init glorot(int64_t in, int64_t out);  // uniform in ±√(6 / (in + out))
  static Init normal(double deviation) { return {Kind::normal, deviation}; }
};

// All the parameters of a model in one flat buffer, in the order they were declared; gradients,
// when wanted, in a second one of the same layout. A parameter's name is the path of its member
// (`encoder/layers/3/attend/W_Q`).
//
// A model declares its parameters in its constructor; place() or allocate() then gives them their
// places.
class ParameterStore {
 public:
  struct Parameter {
    std::string name;
    Tensor tensor;
    Init init;
    int64_t offset;  // in elements, within values()
  };

  explicit ParameterStore(Type type = Type::f32, Device device = Cpu{})
      : type_(type), device_(device) {}

  Tensor declare(const std::string& name, Shape shape, Init init);
  // One tensor over parameters declared directly one after the other, stacked along axis 0.
  Tensor stack(const std::vector<Tensor>& parts);

  void place();  // memory for all parameters, their values not set
  // The same, with first values: they depend on the seed and the parameter's name alone.
  void allocate(uint64_t seed);
  void allocate_gradients();  // zeros; from then on gradients gather in gradients()

  const std::vector<Parameter>& all() const { return parameters_; }
  const Parameter* find(const std::string& name) const;
  int64_t size() const { return size_; }
  Type type() const { return type_; }
  Device device() const { return device_; }
  Tensor values() const { return values_; }        // [size]
  Tensor gradients() const { return gradients_; }  // [size]

 private:
  struct Stack {
    Tensor tensor;
    int64_t offset;
  };
  Type type_;
  Device device_;
  std::vector<Parameter> parameters_;
  std::vector<Stack> stacks_;
  int64_t size_ = 0;
  Tensor values_, gradients_;
};

// Where in the store a layer keeps its parameters: `scope / "attend" / "W_Q"`.
struct Scope {
  ParameterStore& store;
  std::string path;

  Scope operator/(const std::string& name) const {
    return {store, path.empty() ? name : path + "/" + name};
  }
  Scope operator/(int64_t index) const { return *this / std::to_string(index); }
  Tensor declare(const std::string& name, Shape shape, Init init) const {
    return store.declare((*this / name).path, std::move(shape), init);
  }
};

}  // namespace fovea

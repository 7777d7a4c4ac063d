#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <ostream>
#include <span>
#include <vector>

#include "base/check.h"
#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/memory.h"

namespace fovea {

struct Shape : std::vector<int64_t> {
  using std::vector<int64_t>::vector;
  int64_t elements() const {
    return std::accumulate(begin(), end(), int64_t{1}, std::multiplies<>());
  }
  int64_t cols() const { return empty() ? 1 : back(); }
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

// The upper half of a float: matrix products may take their inputs so.
struct bf16 {
  uint16_t bits;
};

// What numbers of type T are added up in.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, bf16>, float, T>;

// To nearest, ties to even. A number that is none may become an infinity.
constexpr bf16 to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

// What a tensor holds. f64 is for gradient checks and goldens, bf16 for inputs of products and, on
// a GPU, for activations between them, i32 for word ids and offsets.
enum class Type : uint8_t { f32, f64, bf16, i32 };
std::size_t bytes_of(Type type);

template <class T>
constexpr Type type_of() {
  if constexpr (std::is_same_v<std::remove_cv_t<T>, float>) return Type::f32;
  if constexpr (std::is_same_v<std::remove_cv_t<T>, double>) return Type::f64;
  if constexpr (std::is_same_v<std::remove_cv_t<T>, fovea::bf16>) return Type::bf16;
  if constexpr (std::is_same_v<std::remove_cv_t<T>, int32_t>) return Type::i32;
}

class Slot;

// A handle to a dense row-major array on one device, and to the slot its gradient gathers in.
// Copies share both. A Tensor never changes shape.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Shape shape, Type type, Device device = Cpu{});  // values are not set
  // A window on somebody else's buffer, starting at `offset` elements.
  Tensor(Shape shape, Type type, Device device, Buffer buffer, int64_t offset);

  static Tensor zeros(Shape shape, Type type, Device device = Cpu{});
  static Tensor like(const Tensor& other) { return {other.shape(), other.type(), other.device()}; }
  // The given numbers, converted to `type`, on `device`.
  static Tensor of(Shape shape, std::span<const double> values, Type type, Device device = Cpu{});
  static Tensor of(std::span<const int32_t> values, Device device = Cpu{});

  explicit operator bool() const { return array_ != nullptr; }
  const Shape& shape() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  int64_t size(int64_t axis) const { return shape().at(axis < 0 ? axis + rank() : axis); }
  int64_t elements() const { return shape().elements(); }
  std::size_t size_bytes() const { return static_cast<std::size_t>(elements()) * bytes_of(type()); }
  int64_t rows() const { return elements() / shape().cols(); }
  int64_t cols() const { return shape().cols(); }
  Type type() const { return array_->type; }
  Device device() const { return array_->device; }

  // REQUIRES: T is the tensor's type. An absent tensor gives an empty matrix.
  template <class T>
  T* data() const {
    assert(!array_ || type() == type_of<T>());
    if (!array_) return nullptr;
    // Another thread may give the values up.
    return reinterpret_cast<T*>(std::atomic_ref(array_->start).load(std::memory_order_relaxed));
  }
  template <class T>
  Matrix<const T> in() const {
    return out<T>();
  }
  template <class T>
  Matrix<T> out() const {
    if (!array_) return {};
    return {data<T>(), shape().cols() ? rows() : 0, shape().cols()};
  }

  // The same numbers under another shape, without a gradient (reshape() has one).
  Tensor view(Shape shape) const;
  // Rows first … first + count of the first axis: a window without a gradient.
  Tensor window(int64_t first, int64_t count) const;

  std::vector<double> values() const;  // a copy on the host
  void assign(std::span<const double> values) const;
  void fill(double value) const;
  void copy_from(const Tensor& other) const;               // of the same type, size and device
  void copy_from(const std::vector<Tensor>& parts) const;  // one after another, at once
  Tensor to(Device device) const;  // itself, or a copy there without a gradient
  void assign_bytes(std::span<const std::byte> bytes) const;  // as they stand in memory
  std::span<const std::byte> bytes() const;                   // REQUIRES: it is on the host

  // The same numbers in bf16, for products, where what computes them writes both; otherwise absent.
  Tensor rounded() const;
  Tensor make_rounded() const;  // takes the memory for them

  // Whether this tensor is a parameter (its slot is bound to the store's gradient).
  bool is_parameter() const { return array_ && array_->parameter; }
  void mark_parameter() const { array_->parameter = true; }  // a kept copy of one
  void mark_parameter(const Tensor& store) const;            // a part of a store's flat tensor
  Tensor whole() const;  // the flat tensor that a parameter is part of, or itself
  // Says of a parameter on the host that nothing but products will read it: they keep it in
  // packed() in an order of their own, and its values are then given up.
  void settle() const { array_->settled = true; }
  bool is_settled() const { return array_ && array_->settled; }
  std::shared_ptr<void>& packed() const { return array_->packed; }
  void give_up_values() const;
  bool needs_grad() const { return array_ && array_->slot != nullptr; }
  const std::shared_ptr<Slot>& slot() const;
  void track() const;                     // gives it an empty slot: its gradient will be gathered
  void bind_gradient(Tensor grad) const;  // the gradient gathers in `grad`: a parameter
  Tensor grad() const;                    // REQUIRES: something flowed into it

  // For the parameter store: lets a declared tensor point at its place once that is known.
  static Tensor declared(Shape shape, Type type, Device device);
  void place(Buffer buffer, int64_t offset) const;
  const Buffer& buffer() const { return array_->buffer; }

 private:
  struct Array {
    Shape shape;
    Type type = Type::f32;
    Device device;
    Buffer buffer;
    std::byte* start = nullptr;
    Buffer rounded;
    bool parameter = false, settled = false;
    std::shared_ptr<void> packed;
    std::shared_ptr<Array> whole;
    std::shared_ptr<Slot> slot;
  };
  std::shared_ptr<Array> array_;
};

// run(x, [&]<class T>(auto on, T) { kernel::softmax(on, x.in<T>(), y.out<T>()); }) calls the
// kernel for the tensor's device and element type.
template <class Launch>
void run(const Tensor& x, Launch launch) {
  std::visit(
      [&](auto on) {
        if (x.type() == Type::f32)
          launch(on, float{});
        else if constexpr (std::is_same_v<decltype(on), Cpu>)
          launch(on, double{});
        else
          assert(!"double tensors live on the CPU");
      },
      x.device());
}

// The same for activations, which are bf16 where a GPU keeps them so: kernels then take T for them
// and Wide<T> for what is added up.
template <class Launch>
void run_activation(const Tensor& x, Launch launch) {
  std::visit(
      [&](auto on) {
        if constexpr (!std::is_same_v<decltype(on), Cpu>)
          if (x.type() == Type::bf16) return launch(on, bf16{});
        run(x, launch);
      },
      x.device());
}

}  // namespace fovea

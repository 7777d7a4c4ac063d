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

// The sizes of a tensor's axes.
struct Shape : std::vector<int64_t> {
  using std::vector<int64_t>::vector;
  int64_t elements() const {
    return std::accumulate(begin(), end(), int64_t{1}, std::multiplies<>());
  }
  int64_t cols() const { return empty() ? 1 : back(); }
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

// A number in bfloat16: the upper 16 bits of a float. Matrix products can read inputs of this type.
struct bf16 {
  uint16_t bits;
};

// The type in which kernels sum numbers of type T: float for bf16, otherwise T.
template <class T>
using SumType = std::conditional_t<std::is_same_v<T, bf16>, float, T>;

// Rounds to nearest, ties to even. A NaN may become an infinity.
constexpr bf16 to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

// The element type of a tensor. f64 is for gradient checks and reference values; i32 is for word
// ids and offsets. bf16 is for inputs of products and, on a GPU, for activations between products.
enum class ElementType : uint8_t { f32, f64, bf16, i32 };
std::size_t bytes_of(ElementType type);

template <class T>
constexpr ElementType type_of() {
  if constexpr (std::is_same_v<std::remove_cv_t<T>, float>) return ElementType::f32;
  if constexpr (std::is_same_v<std::remove_cv_t<T>, double>) return ElementType::f64;
  if constexpr (std::is_same_v<std::remove_cv_t<T>, fovea::bf16>) return ElementType::bf16;
  if constexpr (std::is_same_v<std::remove_cv_t<T>, int32_t>) return ElementType::i32;
}

class GradientSlot;

// A handle to a dense row-major array on one device and to the slot of its gradient (tape.h).
// Copies share array and slot. The shape of a Tensor never changes.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Shape shape, ElementType type, Device device = Cpu{});  // values are not set
  // A tensor in an existing buffer. It begins `offset` elements after the start of the buffer.
  Tensor(Shape shape, ElementType type, Device device, Buffer buffer, int64_t offset);

  static Tensor zeros(Shape shape, ElementType type, Device device = Cpu{});
  static Tensor like(const Tensor& other) { return {other.shape(), other.type(), other.device()}; }
  // A tensor on `device` with the given numbers, converted to `type`.
  static Tensor of(Shape shape, std::span<const double> values, ElementType type,
                   Device device = Cpu{});
  static Tensor of(std::span<const int32_t> values, Device device = Cpu{});

  explicit operator bool() const { return array_ != nullptr; }
  const Shape& shape() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  int64_t size(int64_t axis) const { return shape().at(axis < 0 ? axis + rank() : axis); }
  int64_t elements() const { return shape().elements(); }
  std::size_t size_bytes() const { return static_cast<std::size_t>(elements()) * bytes_of(type()); }
  int64_t rows() const { return elements() / shape().cols(); }
  int64_t cols() const { return shape().cols(); }
  ElementType type() const { return array_->type; }
  Device device() const { return array_->device; }

  // A kernel's view. REQUIRES: T is the tensor's type. An absent tensor gives an empty matrix.
  template <class T>
  T* data() const {
    assert(!array_ || type() == type_of<T>());
    if (!array_) return nullptr;
    // An atomic load, because another thread may discard the values at the same time.
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

  // The same memory with another shape, without a gradient (reshape() has a gradient).
  Tensor view(Shape shape) const;
  // The entries first … first + count − 1 of the first axis, as a tensor in the same memory,
  // without a gradient.
  Tensor window(int64_t first, int64_t count) const;

  std::vector<double> values() const;  // a copy on the host
  void assign(std::span<const double> values) const;
  void fill(double value) const;
  void copy_from(const Tensor& other) const;               // REQUIRES: same type, size and device
  void copy_from(const std::vector<Tensor>& parts) const;  // one after another, in one launch
  Tensor to(Device device) const;  // this tensor, or a copy on `device` without a gradient
  void assign_bytes(std::span<const std::byte> bytes) const;  // in the order and type of memory
  std::span<const std::byte> bytes() const;                   // REQUIRES: the tensor is on the host

  // A copy of this tensor in bf16, for products. It exists only if the kernel that computed this
  // tensor wrote the copy to make_rounded(); otherwise the result is absent.
  Tensor rounded() const;
  Tensor make_rounded() const;  // allocates the memory of rounded()

  // Whether this tensor is a parameter, whose gradient the parameter store holds.
  bool is_parameter() const { return array_ && array_->parameter; }
  void mark_parameter() const { array_->parameter = true; }  // this is a copy of a parameter
  void mark_parameter(const Tensor& store) const;            // this is a range of `store`
  Tensor whole() const;  // the tensor with all parameters of its store, or itself
  // Declares that on the host only products will read this parameter. The products keep it in
  // packed() in their own layout, and the values of this tensor are then discarded.
  void settle() const { array_->settled = true; }
  bool is_settled() const { return array_ && array_->settled; }
  std::shared_ptr<void>& packed() const { return array_->packed; }
  void give_up_values() const;
  bool needs_grad() const { return array_ && array_->slot != nullptr; }
  const std::shared_ptr<GradientSlot>& slot() const;
  void track() const;                     // creates an empty slot for the gradient
  void bind_gradient(Tensor grad) const;  // makes this a parameter; `grad` receives its gradient
  Tensor grad() const;                    // REQUIRES: the slot has a gradient

  // For the parameter store: a tensor without memory. place() gives it memory later.
  static Tensor declared(Shape shape, ElementType type, Device device);
  void place(Buffer buffer, int64_t offset) const;
  const Buffer& buffer() const { return array_->buffer; }

 private:
  struct Array {
    Shape shape;
    ElementType type = ElementType::f32;
    Device device;
    Buffer buffer;
    std::byte* start = nullptr;
    Buffer rounded;
    bool parameter = false, settled = false;
    std::shared_ptr<void> packed;
    std::shared_ptr<Array> whole;
    std::shared_ptr<GradientSlot> slot;
  };
  std::shared_ptr<Array> array_;
};

// run(x, [&]<class T>(auto on, T) { kernel::softmax(on, x.in<T>(), y.out<T>()); }) calls the
// kernel for the tensor's device and element type.
template <class Launch>
void run(const Tensor& x, Launch launch) {
  std::visit(
      [&](auto on) {
        if (x.type() == ElementType::f32)
          launch(on, float{});
        else if constexpr (std::is_same_v<decltype(on), Cpu>)
          launch(on, double{});
        else
          assert(!"double tensors live on the CPU");
      },
      x.device());
}

// Like run(), but for activations, which may be bf16 on a GPU. Kernels read and write numbers of
// type T, and sum in SumType<T>.
template <class Launch>
void run_activation(const Tensor& x, Launch launch) {
  std::visit(
      [&](auto on) {
        if constexpr (!std::is_same_v<decltype(on), Cpu>)
          if (x.type() == ElementType::bf16) return launch(on, bf16{});
        run(x, launch);
      },
      x.device());
}

}  // namespace fovea

#include "tensor/tensor.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "tensor/feed.h"
#include "tensor/tape.h"

namespace fovea {

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (size_t i = 0; i < shape.size(); ++i) out << (i ? ", " : "") << shape[i];
  return out << ']';
}

std::size_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::bf16:
      return 2;
    case ElementType::f64:
      return 8;
    default:
      return 4;
  }
}

Tensor::Tensor(Shape shape, ElementType type, Device device)
    : Tensor(declared(shape, type, device)) {
  place(allocate(static_cast<std::size_t>(shape.elements()) * bytes_of(type), device), 0);
}

Tensor::Tensor(Shape shape, ElementType type, Device device, Buffer buffer, int64_t offset)
    : Tensor(declared(std::move(shape), type, device)) {
  place(std::move(buffer), offset);
}

Tensor Tensor::declared(Shape shape, ElementType type, Device device) {
  Tensor t;
  t.array_ = std::make_shared<Array>();
  t.array_->shape = std::move(shape);
  t.array_->type = type;
  t.array_->device = device;
  return t;
}

void Tensor::place(Buffer buffer, int64_t offset) const {
  array_->start = buffer.get() + static_cast<std::size_t>(offset) * bytes_of(array_->type);
  array_->buffer = std::move(buffer);
}

Tensor Tensor::zeros(Shape shape, ElementType type, Device device) {
  Tensor t(std::move(shape), type, device);
  const std::size_t words = (t.size_bytes() + 3) / 4;  // an allocation has whole words
  fill_words(t.array_->start, words, 0, device);
  return t;
}

Tensor Tensor::of(Shape shape, std::span<const double> values, ElementType type, Device device) {
  Tensor t(std::move(shape), type, device);
  t.assign(values);
  return t;
}

Tensor Tensor::of(std::span<const int32_t> values, Device device) {
  if (const Tensor fed = BatchInputs::window_with(values, device)) return fed;
  Tensor t({static_cast<int64_t>(values.size())}, ElementType::i32, device);
  upload(reinterpret_cast<const std::byte*>(values.data()), t.array_->start, values.size_bytes(),
         device);
  return t;
}

const Shape& Tensor::shape() const {
  static const Shape none;
  return array_ ? array_->shape : none;
}

Tensor Tensor::view(Shape shape) const {
  assert(shape.elements() == elements());
  Tensor t;
  t.array_ = std::make_shared<Array>(*array_);
  t.array_->shape = std::move(shape);
  t.array_->slot = nullptr;
  return t;
}

Tensor Tensor::window(int64_t first, int64_t count) const {
  const int64_t step = size(0) ? elements() / size(0) : 0;
  Tensor t = declared(shape(), type(), device());
  t.array_->shape[0] = count;
  t.array_->buffer = array_->buffer;
  t.array_->start = array_->start + static_cast<std::size_t>(first * step) * bytes_of(type());
  return t;
}

Tensor Tensor::rounded() const {
  if (!array_->rounded) return {};
  return {shape(), ElementType::bf16, device(), array_->rounded, 0};
}

Tensor Tensor::make_rounded() const {
  array_->rounded =
      allocate(static_cast<std::size_t>(elements()) * bytes_of(ElementType::bf16), device());
  return rounded();
}

namespace {

// widen() converts elements of type T in `bytes` to double. narrow() converts double to elements of
// type T.
template <class T>
void widen(const std::vector<std::byte>& bytes, std::vector<double>& to) {
  const T* const from = reinterpret_cast<const T*>(bytes.data());
  for (size_t i = 0; i < to.size(); ++i) {
    if constexpr (std::is_same_v<T, bf16>)
      to[i] = std::bit_cast<float>(uint32_t{from[i].bits} << 16);
    else
      to[i] = static_cast<double>(from[i]);
  }
}
template <class T>
std::vector<std::byte> narrow(std::span<const double> from) {
  std::vector<std::byte> bytes(from.size() * sizeof(T));
  T* const to = reinterpret_cast<T*>(bytes.data());
  for (size_t i = 0; i < from.size(); ++i) {
    if constexpr (std::is_same_v<T, bf16>)
      to[i] = to_bf16(static_cast<float>(from[i]));
    else
      to[i] = static_cast<T>(from[i]);
  }
  return bytes;
}

}  // namespace

std::vector<double> Tensor::values() const {
  std::vector<double> out(static_cast<size_t>(elements()));
  std::vector<std::byte> bytes(size_bytes());
  download(array_->start, bytes.data(), bytes.size(), device());
  switch (type()) {
    case ElementType::f32:
      widen<float>(bytes, out);
      break;
    case ElementType::f64:
      widen<double>(bytes, out);
      break;
    case ElementType::i32:
      widen<int32_t>(bytes, out);
      break;
    case ElementType::bf16:
      widen<bf16>(bytes, out);
      break;
  }
  return out;
}

void Tensor::assign(std::span<const double> values) const {
  assert(static_cast<int64_t>(values.size()) == elements());
  switch (type()) {
    case ElementType::f32:
      return assign_bytes(narrow<float>(values));
    case ElementType::f64:
      return assign_bytes(narrow<double>(values));
    case ElementType::i32:
      return assign_bytes(narrow<int32_t>(values));
    case ElementType::bf16:
      return assign_bytes(narrow<bf16>(values));
  }
}

void Tensor::assign_bytes(std::span<const std::byte> bytes) const {
  assert(bytes.size() == size_bytes());
  upload(bytes.data(), array_->start, bytes.size(), device());
}

std::span<const std::byte> Tensor::bytes() const {
  assert(device() == Device{Cpu{}});
  return {array_->start, size_bytes()};
}

Tensor Tensor::to(Device there) const {
  if (there == device()) return *this;
  Tensor copy(shape(), type(), there);
  if (there == Device{Cpu{}})
    download(array_->start, copy.array_->start, size_bytes(), device());
  else
    upload(to(Cpu{}).array_->start, copy.array_->start, size_bytes(), there);
  return copy;
}

void Tensor::copy_from(const Tensor& other) const {
  assert(type() == other.type() && elements() == other.elements());
  copy_bytes(other.array_->start, array_->start, size_bytes(), device());
}

void Tensor::copy_from(const std::vector<Tensor>& parts) const {
  std::vector<ByteCopy> moves;
  std::byte* to = array_->start;
  for (const Tensor& part : parts) {
    assert(type() == part.type());
    moves.push_back({part.array_->start, to, part.size_bytes()});
    to += part.size_bytes();
  }
  assert(to == array_->start + size_bytes());
  copy_all(moves, device());
}

void Tensor::fill(double value) const {
  const auto count = static_cast<std::size_t>(elements());
  if (type() == ElementType::f32)
    return fill_words(array_->start, count, std::bit_cast<uint32_t>(static_cast<float>(value)),
                      device());
  assert(type() == ElementType::f64);
  std::fill_n(data<double>(), count, value);
}

void Tensor::give_up_values() const {
  std::byte* const start = std::atomic_ref(array_->start).exchange(nullptr);
  if (start) give_up(start, size_bytes());
}

const std::shared_ptr<GradientSlot>& Tensor::slot() const {
  static const std::shared_ptr<GradientSlot> none;
  return array_ ? array_->slot : none;
}

void Tensor::mark_parameter(const Tensor& store) const {
  array_->parameter = true;
  array_->whole = store.array_;
}

Tensor Tensor::whole() const {
  if (!array_->whole) return *this;
  Tensor t;
  t.array_ = array_->whole;
  return t;
}

void Tensor::track() const {
  if (!array_->slot) array_->slot = std::make_shared<GradientSlot>(shape(), type(), device());
}

void Tensor::bind_gradient(Tensor grad) const {
  array_->parameter = true;
  array_->slot = std::make_shared<GradientSlot>(std::move(grad));
}

Tensor Tensor::grad() const {
  assert(array_->slot && array_->slot->holds());
  return array_->slot->value();
}

}  // namespace fovea

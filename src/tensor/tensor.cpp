#include "tensor/tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tensor/tape.h"

namespace fovea {

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (size_t i = 0; i < shape.size(); ++i) out << (i ? ", " : "") << shape[i];
  return out << ']';
}

std::size_t bytes_of(Type type) {
  switch (type) {
    case Type::bf16:
      return 2;
    case Type::f64:
      return 8;
    default:
      return 4;
  }
}

Tensor::Tensor(Shape shape, Type type, Device device) : Tensor(declared(shape, type, device)) {
  place(allocate(static_cast<std::size_t>(shape.elements()) * bytes_of(type), device), 0);
}

Tensor::Tensor(Shape shape, Type type, Device device, Buffer buffer, int64_t offset)
    : Tensor(declared(std::move(shape), type, device)) {
  place(std::move(buffer), offset);
}

Tensor Tensor::declared(Shape shape, Type type, Device device) {
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

Tensor Tensor::zeros(Shape shape, Type type, Device device) {
  Tensor t(std::move(shape), type, device);
  std::memset(t.array_->start, 0, static_cast<std::size_t>(t.elements()) * bytes_of(type));
  return t;
}

Tensor Tensor::of(Shape shape, std::span<const double> values, Type type, Device device) {
  Tensor t(std::move(shape), type, device);
  t.assign(values);
  return t;
}

Tensor Tensor::of(std::span<const int32_t> values, Device device) {
  Tensor t({static_cast<int64_t>(values.size())}, Type::i32, device);
  std::ranges::copy(values, t.data<int32_t>());
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

std::vector<double> Tensor::values() const {
  std::vector<double> out(static_cast<size_t>(elements()));
  switch (type()) {
    case Type::f32:
      std::copy_n(data<float>(), out.size(), out.begin());
      break;
    case Type::f64:
      std::copy_n(data<double>(), out.size(), out.begin());
      break;
    case Type::i32:
      std::copy_n(data<int32_t>(), out.size(), out.begin());
      break;
    case Type::bf16:
      std::transform(data<bf16>(), data<bf16>() + out.size(), out.begin(),
                     [](bf16 v) { return double{std::bit_cast<float>(uint32_t{v.bits} << 16)}; });
      break;
  }
  return out;
}

void Tensor::assign(std::span<const double> values) const {
  assert(static_cast<int64_t>(values.size()) == elements());
  auto cast = [&]<class T>(T* to) {
    std::ranges::transform(values, to, [](double v) { return static_cast<T>(v); });
  };
  switch (type()) {
    case Type::f32:
      cast(data<float>());
      break;
    case Type::f64:
      cast(data<double>());
      break;
    case Type::i32:
      cast(data<int32_t>());
      break;
    case Type::bf16:
      assert(!"bf16 tensors are made by cast()");
      break;
  }
}

void Tensor::copy_from(const Tensor& other) const {
  assert(type() == other.type() && elements() == other.elements());
  copy_bytes(other.array_->start, array_->start,
             static_cast<std::size_t>(elements()) * bytes_of(type()), device());
}

namespace {

template <class T>
void fill_all(T* to, int64_t count, T value) {
#pragma omp parallel for simd schedule(static) if (count > (1 << 18))
  for (int64_t i = 0; i < count; ++i) to[i] = value;
}

}  // namespace

void Tensor::fill(double value) const {
  if (type() == Type::f64)
    fill_all(data<double>(), elements(), value);
  else
    fill_all(data<float>(), elements(), static_cast<float>(value));
}

const std::shared_ptr<Slot>& Tensor::slot() const {
  static const std::shared_ptr<Slot> none;
  return array_ ? array_->slot : none;
}

void Tensor::track() const {
  if (!array_->slot) array_->slot = std::make_shared<Slot>(shape(), type(), device());
}

void Tensor::bind_gradient(Tensor grad) const {
  array_->parameter = true;
  array_->slot = std::make_shared<Slot>(std::move(grad));
}

Tensor Tensor::grad() const {
  assert(array_->slot && array_->slot->holds());
  return array_->slot->value();
}

}  // namespace fovea

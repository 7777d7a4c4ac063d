#include "ops/shape.h"

#include "ops/shape_kernel.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// The first row and column of a block in a matrix.
struct Place {
  int64_t row, column;
};

// take() copies a block of `whole` to `part`. put() copies `part` to a block of `whole`. The block
// begins at row and column `place` and has the size of `part`.
void take(const Tensor& whole, Place place, const Tensor& part, OutputMode fold) {
  run(whole, [&]<class T>(auto on, T) {
    const T* from = whole.data<T>() + place.row * whole.cols() + place.column;
    kernel::copy<T>(
        on, {from, whole.cols(), part.data<T>(), part.cols(), part.rows(), part.cols(), fold});
  });
}
void put(const Tensor& part, const Tensor& whole, Place place, OutputMode fold) {
  run(whole, [&]<class T>(auto on, T) {
    T* to = whole.data<T>() + place.row * whole.cols() + place.column;
    kernel::copy<T>(
        on, {part.data<T>(), part.cols(), to, whole.cols(), part.rows(), part.cols(), fold});
  });
}

Tensor part_of(const Tensor& x, Place place, int64_t row_count, int64_t column_count) {
  Tensor y({row_count, column_count}, x.type(), x.device());
  take(x, place, y, OutputMode::set);
  return record(y, {x}, [=, slot = x.slot()](const Tensor& dy) {
    gather(slot, [&](const Tensor& dx, OutputMode fold) {
      if (fold == OutputMode::set) dx.fill(0);
      put(dy, dx, place, OutputMode::add);
    });
  });
}

// A matrix of the given shape that consists of `parts`. Block i, parts[i], begins at row and column
// places[i].
Tensor joined(Shape shape, const std::vector<Tensor>& parts, const std::vector<Place>& places) {
  Tensor y(std::move(shape), parts.front().type(), parts.front().device());
  std::vector<std::shared_ptr<GradientSlot>> slots;
  for (const Tensor& part : parts) slots.push_back(part.slot());
  const bool one_launch = !std::holds_alternative<Cpu>(y.device()) && places.back().column == 0;
  if (one_launch)
    y.copy_from(parts);
  else
    for (size_t i = 0; i < parts.size(); ++i) put(parts[i], y, places[i], OutputMode::set);
  return record(y, parts, [=](const Tensor& dy) {
    for (size_t i = 0; i < slots.size(); ++i)
      gather(slots[i], [&](const Tensor& dx, OutputMode fold) { take(dy, places[i], dx, fold); });
  });
}

}  // namespace

Tensor reshape(const Tensor& x, Shape shape) {
  return record(x.view(std::move(shape)), {x}, [slot = x.slot()](const Tensor& dy) {
    gather(slot, [&](const Tensor& dx, OutputMode fold) {
      take(dy.view(dx.shape()), {0, 0}, dx, fold);
    });
  });
}

Tensor rows(const Tensor& x, int64_t first, int64_t count) {
  return part_of(x, {first, 0}, count, x.cols());
}
Tensor columns(const Tensor& x, int64_t first, int64_t count) {
  return part_of(x, {0, first}, x.rows(), count);
}

Tensor concat_rows(const std::vector<Tensor>& parts) {
  std::vector<Place> places;
  int64_t total = 0;
  for (const Tensor& part : parts) {
    places.push_back({total, 0});
    total += part.rows();
  }
  return joined({total, parts.front().cols()}, parts, places);
}

Tensor concat_columns(const std::vector<Tensor>& parts) {
  std::vector<Place> places;
  int64_t total = 0;
  for (const Tensor& part : parts) {
    places.push_back({0, total});
    total += part.cols();
  }
  Shape shape = parts.front().shape();
  shape.back() = total;
  return joined(shape, parts, places);
}

void copy_columns(const Tensor& from, int64_t first, const Tensor& to) {
  take(from, {0, first}, to, OutputMode::set);
}

}  // namespace fovea

#include "ops/elementwise.h"

#include "ops/elementwise_kernel.h"
#include "tensor/tape.h"

namespace fovea {

Tensor apply(Function f, const Tensor& x, const Dropout& dropout) {
  Tensor y = Tensor::like(x);
  run_activation(
      x, [&]<class T>(auto on, T) { kernel::apply(on, f, x.in<T>(), dropout, y.out<T>()); });
  if (f == Function::relu)
    return record(y, {x}, [=, slot = x.slot()](const Tensor& dy) {  // y > 0 exactly where x > 0
      gather(slot, [&](const Tensor& dx, OutputMode fold) {
        run_activation(y, [&]<class T>(auto on, T) {
          kernel::relu_grad(on, y.in<T>(), dy.in<T>(), dropout, dx.out<T>(), fold);
        });
      });
    });
  return record(y, {x}, [=](const Tensor& dy) {
    gather(x.slot(), [&](const Tensor& dx, OutputMode fold) {
      run_activation(x, [&]<class T>(auto on, T) {
        kernel::apply_grad(on, f, x.in<T>(), dy.in<T>(), dropout, dx.out<T>(), fold);
      });
    });
  });
}

Tensor gated(Function f, const Tensor& x, const Tensor& z, const Dropout& dropout) {
  assert(x.shape() == z.shape() && x.type() == z.type());
  Tensor y = Tensor::like(x);
  run_activation(x, [&]<class T>(auto on, T) {
    kernel::gate(on, f, x.in<T>(), z.in<T>(), dropout, y.out<T>(), OutputMode::set);
  });
  return record(y, {x, z}, [=](const Tensor& dy) {
    assert(!x.slot() || x.slot() != z.slot());
    gather(x.slot(), [&](const Tensor& dx, OutputMode fold) {
      run_activation(x, [&]<class T>(auto on, T) {
        kernel::gate_grad<T>(on, f, {x.in<T>(), z.in<T>(), dy.in<T>(), dx.out<T>(), fold}, dropout);
      });
    });
    gather(z.slot(), [&](const Tensor& dz, OutputMode fold) {  // dz = dropout(f(x) dy)
      run_activation(x, [&]<class T>(auto on, T) {
        kernel::gate(on, f, x.in<T>(), dy.in<T>(), dropout, dz.out<T>(), fold);
      });
    });
  });
}

namespace {

// Sets or adds to the gradient of x, the input of a dropout. x may be an activation in bf16.
void dropout_gradient(const Dropout& dropout, const Tensor& dy,
                      const std::shared_ptr<GradientSlot>& slot) {
  gather(slot, [&](const Tensor& dx, OutputMode fold) {
    run_activation(dx, [&]<class T>(auto on, T) {
      kernel::drop(on, dy.in<SumType<T>>(), dropout, dx.out<T>(), fold);
    });
  });
}

}  // namespace

Tensor residual(const Tensor& x, const Tensor& f, const Dropout& dropout) {
  Tensor y = Tensor::like(x);
  run_activation(f, [&]<class T>(auto on, T) {
    using W = SumType<T>;
    kernel::residual(on, x.in<W>(), f.in<T>(), dropout, y.out<W>());
  });
  return record(y, {x, f}, [=, to_x = x.slot(), to_f = f.slot()](const Tensor& dy) {
    dropout_gradient({}, dy, to_x);
    dropout_gradient(dropout, dy, to_f);
  });
}

Tensor dropped(const Tensor& x, const Dropout& dropout) {
  if (!dropout.on()) return x;
  Tensor y = Tensor::like(x);
  run(x, [&]<class T>(auto on, T) {
    kernel::drop(on, x.in<T>(), dropout, y.out<T>(), OutputMode::set);
  });
  return record(y, {x},
                [=, slot = x.slot()](const Tensor& dy) { dropout_gradient(dropout, dy, slot); });
}

namespace {

Shape joined(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (size_t k = 0; k < out.size(); ++k) {
    auto at = [&](const Shape& s) { return k < s.size() ? s[s.size() - 1 - k] : 1; };
    assert(at(a) == at(b) || at(a) == 1 || at(b) == 1);
    out[out.size() - 1 - k] = std::max(at(a), at(b));
  }
  return out;
}

std::array<int64_t, 4> strides(const Shape& full, const Shape& part) {
  std::array<int64_t, 4> s{};
  int64_t stride = 1;
  for (size_t k = 0; k < full.size(); ++k) {
    const int64_t n = k < part.size() ? part[part.size() - 1 - k] : 1;
    s[3 - k] = n == 1 ? 0 : stride;
    stride *= n;
  }
  return s;
}

kernel::Broadcast broadcast(const Shape& full, const Shape& a, const Shape& b) {
  assert(full.size() <= 4);
  kernel::Broadcast shape{{1, 1, 1, 1}, strides(full, a), strides(full, b)};
  for (size_t k = 0; k < full.size(); ++k) shape.size[3 - k] = full[full.size() - 1 - k];
  return shape;
}

Tensor binary(kernel::Binary what, const Tensor& a, const Tensor& b) {
  Tensor y(joined(a.shape(), b.shape()), a.type(), a.device());
  run(y, [&]<class T>(auto on, T) {
    kernel::binary(on, what, broadcast(y.shape(), a.shape(), b.shape()), a.data<T>(), b.data<T>(),
                   y.data<T>());
  });
  return record(y, {a, b}, [=](const Tensor& dy) {
    auto flow = [&](const Tensor& to, const Tensor& other) {
      gather(to.slot(), [&](const Tensor& dx, OutputMode fold) {
        if (fold == OutputMode::set) dx.fill(0);
        run(dy, [&]<class T>(auto on, T) {
          kernel::binary_grad(on, what, broadcast(dy.shape(), to.shape(), other.shape()),
                              dy.data<T>(), other.data<T>(), dx.data<T>());
        });
      });
    };
    flow(a, b);
    flow(b, a);
  });
}

}  // namespace

Tensor operator+(const Tensor& a, const Tensor& b) { return binary(kernel::Binary::add, a, b); }
Tensor operator*(const Tensor& a, const Tensor& b) {
  return binary(kernel::Binary::multiply, a, b);
}

Tensor operator*(const Tensor& x, double factor) {
  Tensor y = Tensor::like(x);
  run(x, [&]<class T>(auto on, T) {
    kernel::scale(on, x.in<T>(), factor, y.out<T>(), OutputMode::set);
  });
  return record(y, {x}, [=, slot = x.slot()](const Tensor& dy) {
    gather(slot, [&](const Tensor& dx, OutputMode fold) {
      run(dy,
          [&]<class T>(auto on, T) { kernel::scale(on, dy.in<T>(), factor, dx.out<T>(), fold); });
    });
  });
}

Tensor sum(const Tensor& x) {
  Tensor y({1}, x.type(), x.device());
  run(x, [&]<class T>(auto on, T) { kernel::sum(on, x.in<T>(), y.data<T>()); });
  return record(y, {x}, [slot = x.slot()](const Tensor& dy) {
    gather(slot, [&](const Tensor& dx, OutputMode fold) {
      run(dy,
          [&]<class T>(auto on, T) { kernel::add_constant(on, dy.data<T>(), dx.out<T>(), fold); });
    });
  });
}

}  // namespace fovea

#include "ops/softmax.h"

#include "ops/softmax_kernel.h"
#include "tensor/tape.h"

namespace fovea {

Tensor softmax(const Tensor& x, const Tensor& keep) {
  assert(!keep || (keep.cols() == x.cols() && x.rows() % keep.rows() == 0));
  Tensor y = Tensor::like(x);
  run(x, [&]<class T>(auto on, T) { kernel::softmax(on, x.in<T>(), keep.in<T>(), y.out<T>()); });

  return record(y, {x}, [y, slot = x.slot()](const Tensor& dy) {  // dx = y (dy − ⟨y, dy⟩)
    gather(slot, [&](const Tensor& dx, OutputMode fold) {
      run(y, [&]<class T>(auto on, T) {
        kernel::softmax_grad(on, y.in<T>(), dy.in<T>(), dx.out<T>(), fold);
      });
    });
  });
}

}  // namespace fovea

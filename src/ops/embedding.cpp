#include "ops/embedding.h"

#include "ops/embedding_kernel.h"
#include "ops/matmul.h"
#include "tensor/tape.h"

namespace fovea {

Tensor embed(const Tensor& E, const Tensor& P, const Embedding& what) {
  Tensor y({what.ids.elements(), E.cols()}, E.type(), E.device());
  const Tensor rounded = bf16_activations(E.device()) ? y.make_rounded() : Tensor();
  run(y, [&]<class T>(auto on, T) {
    kernel::embed<T>(on,
                     {what.ids.data<int32_t>(), what.places.data<int32_t>(), E.in<T>(), P.in<T>(),
                      what.scale, what.dropout},
                     y.out<T>(), rounded.out<bf16>());
  });
  return record(y, {E, P}, [=, to_E = E.slot(), to_P = P.slot()](const Tensor& dy) {
    auto flow = [&](const std::shared_ptr<GradientSlot>& slot, const Tensor& rows, double scale) {
      gather(slot, [&](const Tensor& dE, OutputMode fold) {
        if (fold == OutputMode::set) dE.fill(0);
        run(dy, [&]<class T>(auto on, T) {
          kernel::embed_grad(on, rows.data<int32_t>(), dy.in<T>(), scale, what.dropout,
                             dE.out<T>());
        });
      });
    };
    flow(to_E, what.ids, what.scale);
    flow(to_P, what.places, 1);
  });
}

void copy_rows(const Tensor& from, const Tensor& index, const Tensor& to) {
  assert(index.elements() == to.rows() && from.cols() == to.cols());
  run(to, [&]<class T>(auto on, T) {
    kernel::embed<T>(on, {index.data<int32_t>(), nullptr, from.in<T>(), {}, 1, {}}, to.out<T>());
  });
}

}  // namespace fovea

#include "ops/alignment_loss.h"

#include <cassert>
#include <cmath>

#include "ops/alignment_loss_kernel.h"
#include "ops/cross_entropy.h"
#include "ops/elementwise.h"
#include "ops/elementwise_kernel.h"
#include "ops/matmul.h"
#include "ops/shape.h"
#include "tensor/tape.h"

namespace fovea {

namespace {

// The arguments of guide_loss().
struct Operands {
  Tensor q, k;
  SentenceOffsets queries, keys;
  AlignmentTargets targets;

  template <class T>
  kernel::AlignmentLossInput<T> as() const {
    return {q.in<T>(),
            k.in<T>(),
            queries.offsets.data<int32_t>(),
            keys.offsets.data<int32_t>(),
            queries.sentences,
            targets.offsets.data<int32_t>(),
            targets.keys.data<int32_t>()};
  }
};

}  // namespace

Tensor guide_loss(const Tensor& q, const Tensor& k, const SentenceOffsets& queries,
                  const SentenceOffsets& keys, const AlignmentTargets& targets) {
  assert(q.cols() == k.cols() && targets.offsets.elements() == q.rows() + 1);
  const Operands in{q, k, queries, keys, targets};
  Tensor losses({q.rows()}, q.type(), q.device()), loss({1}, q.type(), q.device());
  const Tensor log_sums = Tensor::like(losses);
  run(q, [&]<class T>(auto on, T) {
    kernel::guide_loss(on, in.as<T>(), losses.data<T>(), log_sums.data<T>());
    kernel::sum(on, losses.in<T>(), loss.data<T>());
  });

  return record(loss, {q, k}, [=](const Tensor& dy) {
    gather(in.q.slot(), [&](const Tensor& dq, OutputMode fold) {
      run(dy, [&]<class T>(auto on, T) {
        kernel::guide_loss_grad_q<T>(on, in.as<T>(), dy.data<T>(), log_sums.data<T>(), dq.out<T>(),
                                     fold);
      });
    });
    gather(in.k.slot(), [&](const Tensor& dk, OutputMode fold) {
      run(dy, [&]<class T>(auto on, T) {
        kernel::guide_loss_grad_k<T>(on, in.as<T>(), dy.data<T>(), log_sums.data<T>(), dk.out<T>(),
                                     fold);
      });
    });
  });
}

Tensor guide_loss_reference(const Tensor& q, const Tensor& k, const SentenceOffsets& queries,
                            const SentenceOffsets& keys, const AlignmentTargets& targets) {
  const Tensor query_offsets = queries.offsets.to(Cpu{}), key_offsets = keys.offsets.to(Cpu{});
  const Tensor link_offsets = targets.offsets.to(Cpu{}), linked = targets.keys.to(Cpu{});
  const int32_t *from = query_offsets.data<int32_t>(), *to = key_offsets.data<int32_t>();
  const int32_t *offsets = link_offsets.data<int32_t>(), *links = linked.data<int32_t>();
  const double scale = 1 / std::sqrt(static_cast<double>(q.cols()));
  Tensor loss = Tensor::of({1}, std::vector{0.0}, q.type(), q.device());
  for (int64_t b = 0; b < queries.sentences; ++b) {
    const int64_t T = from[b + 1] - from[b], S = to[b + 1] - to[b];
    if (T == 0 || S == 0) continue;
    const Tensor s = matmul(rows(q, from[b], T), transpose(rows(k, to[b], S))) * scale;
    // A query with c links has weight 1/c per link. Pass (c, r) takes the r-th link of each query
    // with c links as its label. All other queries get label −1, which cross_entropy() omits.
    for (int32_t c = 1; c <= S; ++c)
      for (int32_t r = 0; r < c; ++r) {
        std::vector<int32_t> labels(static_cast<size_t>(T), -1);
        for (int64_t n = from[b]; n < from[b + 1]; ++n)
          if (offsets[n + 1] - offsets[n] == c)
            labels[static_cast<size_t>(n - from[b])] = links[offsets[n] + r];
        const Tensor of_rank = cross_entropy(s, Tensor::of(labels, q.device()), 0).loss;
        loss = loss + of_rank * (1.0 / c);
      }
  }
  return loss;
}

}  // namespace fovea

#include "ops/lookup.h"

#include "ops/elementwise.h"
#include "ops/lookup_kernel.h"
#include "ops/matmul.h"
#include "ops/shape.h"
#include "ops/softmax_kernel.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

kernel::Looking looking(const Lookup& look) {
  return {look.memory.offsets.data<int32_t>(), look.sentence.data<int32_t>(), look.memory.sentences,
          look.queries()};
}

Tensor scores_like(const Tensor& q, const Lookup& look) {
  assert(q.rows() == look.queries());
  return {{look.queries(), look.columns()}, q.type(), q.device()};
}

// The three products between queries, words and their matrix; each is the others' gradient.
void dot(const Lookup& look, const Tensor& q, const Tensor& k, const Tensor& e, Fold fold) {
  run(q, [&]<class T>(auto on, T) {
    kernel::look_dot(on, looking(look), q.in<T>(), k.in<T>(), e.out<T>(), fold);
  });
}
void blend(const Lookup& look, const Tensor& e, const Tensor& k, const Tensor& q, Fold fold) {
  run(q, [&]<class T>(auto on, T) {
    kernel::look_blend(on, looking(look), e.in<T>(), k.in<T>(), q.out<T>(), fold);
  });
}
void spread(const Lookup& look, const Tensor& e, const Tensor& q, const Tensor& k, Fold fold) {
  run(q, [&]<class T>(auto on, T) {
    kernel::look_spread(on, looking(look), e.in<T>(), q.in<T>(), k.out<T>(), fold);
  });
}

// Like gather(), but writes to nowhere where no gradient is wanted: for kernels that give several.
void gather_or_skip(const std::shared_ptr<Slot>& slot,
                    const std::function<void(const Tensor& dx, Fold fold)>& write) {
  slot ? slot->gather(write) : write({}, Fold::set);
}

}  // namespace

Tensor Lookup::lengths() const {
  Tensor n({queries()}, Type::i32, sentence.device());
  std::visit([&](auto on) { kernel::lengths(on, looking(*this), n.data<int32_t>()); }, n.device());
  return n;
}

Tensor Lookup::lengths_as(Type type, int64_t most) const {
  Tensor n({queries(), 1}, type, sentence.device());
  run(n, [&]<class T>(auto on, T) { kernel::lengths_as(on, looking(*this), most, n.data<T>()); });
  return n;
}

Tensor dot_scores(const Tensor& q, const Tensor& keys, const Lookup& look) {
  assert(q.cols() == keys.cols() && keys.rows() == look.memory.tokens);
  Tensor e = scores_like(q, look);
  dot(look, q, keys, e, Fold::set);
  return record(e, {q, keys}, [=](const Tensor& de) {
    gather(q.slot(), [&](const Tensor& dq, Fold fold) {  // dq_i = Σ_j de_ij k_j
      blend(look, de, keys, dq, fold);
    });
    gather(keys.slot(), [&](const Tensor& dk, Fold fold) {  // dk_j = Σ_i de_ij q_i
      spread(look, de, q, dk, fold);
    });
  });
}

Tensor additive_scores(const Tensor& q, const Tensor& keys, const Tensor& v, const Lookup& look) {
  assert(q.cols() == keys.cols() && q.cols() == v.elements());
  assert(keys.rows() == look.memory.tokens && (!q.slot() || q.slot() != keys.slot()));
  Tensor e = scores_like(q, look);
  run(q, [&]<class T>(auto on, T) {
    kernel::additive_scores(on, looking(look), q.in<T>(), keys.in<T>(), v.data<T>(), e.out<T>());
  });
  return record(e, {q, keys, v}, [=](const Tensor& de) {  // all three need the same tanh
    gather_or_skip(q.slot(), [&](const Tensor& dq, Fold fold_q) {
      gather_or_skip(keys.slot(), [&](const Tensor& dk, Fold fold_k) {
        gather_or_skip(v.slot(), [&](const Tensor& dv, Fold fold_v) {
          run(q, [&]<class T>(auto on, T) {
            kernel::additive_scores_grad<T>(
                on, looking(look), q.in<T>(), keys.in<T>(), v.data<T>(), de.in<T>(),
                {dq.out<T>(), dk.out<T>(), dv.data<T>(), fold_q, fold_k, fold_v});
          });
        });
      });
    });
  });
}

Tensor softmax_within(const Tensor& e, const Ranges& ranges) {
  assert(ranges.low.elements() == e.rows() && ranges.high.elements() == e.rows());
  Tensor y = Tensor::like(e);
  run(e, [&]<class T>(auto on, T) {
    kernel::softmax_within(on, e.in<T>(), ranges.low.data<int32_t>(), ranges.high.data<int32_t>(),
                           y.out<T>());
  });
  return record(y, {e}, [y, slot = e.slot()](const Tensor& dy) {  // de = y (dy − ⟨y, dy⟩)
    gather(slot, [&](const Tensor& de, Fold fold) {
      run(y, [&]<class T>(auto on, T) {
        kernel::softmax_grad(on, y.in<T>(), dy.in<T>(), de.out<T>(), fold);
      });
    });
  });
}

Tensor weighted_sum(const Tensor& alpha, const Tensor& h, const Lookup& look) {
  assert(alpha.rows() == look.queries() && alpha.cols() == look.columns());
  assert(h.rows() == look.memory.tokens);
  Tensor c({look.queries(), h.cols()}, h.type(), h.device());
  blend(look, alpha, h, c, Fold::set);
  return record(c, {alpha, h}, [=](const Tensor& dc) {
    gather(alpha.slot(), [&](const Tensor& da, Fold fold) {  // dα_ij = dc_i · h_j
      dot(look, dc, h, da, fold);
    });
    gather(h.slot(), [&](const Tensor& dh, Fold fold) {  // dh_j = Σ_i α_ij dc_i
      spread(look, alpha, dc, dh, fold);
    });
  });
}

namespace {

// body(i, first word, words) for each query; what it returns, one below the other.
template <class Body>
Tensor query_by_query(const Lookup& look, Body body) {
  std::vector<Tensor> parts;
  const int32_t* offsets = look.memory.offsets.data<int32_t>();
  for (int64_t i = 0; i < look.queries(); ++i) {
    const int32_t b = look.sentence.data<int32_t>()[i];
    parts.push_back(body(i, offsets[b], offsets[b + 1] - offsets[b]));
  }
  return below_each_other(parts);
}

}  // namespace

Tensor additive_scores_reference(const Tensor& q, const Tensor& keys, const Tensor& v,
                                 const Lookup& look) {
  const Tensor row = reshape(v, {1, v.elements()});
  return query_by_query(look, [&](int64_t i, int64_t first, int64_t words) {
    const Tensor k = rows(keys, first, words);
    const Tensor e = transpose(linear(tanh(rows(q, i, 1) + k), row));  // v · tanh(q_i + k_j)
    const int64_t rest = look.columns() - words;
    return rest ? concat(e, Tensor::zeros({1, rest}, e.type(), e.device())) : e;
  });
}

Tensor weighted_sum_reference(const Tensor& alpha, const Tensor& h, const Lookup& look) {
  return query_by_query(look, [&](int64_t i, int64_t first, int64_t words) {
    return matmul(columns(rows(alpha, i, 1), 0, words), rows(h, first, words));  // Σ_j α_ij h_j
  });
}

}  // namespace fovea

#include "ops/lookup.h"

#include <map>
#include <utility>

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

// launch(on, T, words): a GPU reads the words in bf16 where there is such a copy of them, because
// each step of a decoder reads them all.
template <class Launch>
void run_words(const Tensor& q, const Tensor& words, Launch launch) {
  run(q, [&]<class T>(auto on, T) {
    if constexpr (!std::is_same_v<decltype(on), Cpu>)
      if (const Tensor copy = words.rounded()) return launch(on, T{}, copy.in<bf16>());
    launch(on, T{}, words.in<T>());
  });
}

// The three products between queries, words and their matrix; each is the others' gradient.
void dot(const Lookup& look, const Tensor& q, const Tensor& k, const Tensor& e, Fold fold) {
  run_words(q, k, [&]<class T>(auto on, T, auto words) {
    kernel::look_dot(on, looking(look), q.in<T>(), words, e.out<T>(), fold);
  });
}
void blend(const Lookup& look, const Tensor& e, const Tensor& k, const Tensor& q, Fold fold,
           const Tensor& rounded = {}) {
  run_words(q, k, [&]<class T>(auto on, T, auto words) {
    kernel::look_blend(on, looking(look), e.in<T>(), words, q.out<T>(), fold, rounded.out<bf16>());
  });
}
void spread(const Lookup& look, const Tensor& e, const Tensor& q, const Tensor& k, Fold fold) {
  run(q, [&]<class T>(auto on, T) {
    kernel::look_spread(on, looking(look), e.in<T>(), q.in<T>(), k.out<T>(), fold);
  });
}

// Like gather(), but writes to nowhere where no gradient is wanted: for kernels that give several.
void gather_or_skip(Slot* slot, const std::function<void(const Tensor& dx, Fold fold)>& write) {
  slot ? slot->gather(write) : write({}, Fold::set);
}

// Note [Late gradients of words]
// A recurrent decoder looks at the same words once for each word of its own. What queries want to
// add to the gradient of the words waits until the way back comes to the words themselves, and is
// then computed for all queries at once.
struct Waiting {
  using Write = void (*)(const Waiting& all);
  Slot* words;  // where it goes, which owns this
  Packing memory;
  Write write;
  std::vector<Tensor> sentence, e, q;  // of the queries, call after call
  Tensor keys = {}, v = {};            // of additive scores; without the slot that owns this

  Lookup look() const { return {memory, joined(sentence)}; }
  static Tensor joined(const std::vector<Tensor>& parts) {
    if (parts.size() == 1) return parts[0];
    Shape shape = parts[0].shape();
    shape[0] = 0;
    for (const Tensor& part : parts) shape[0] += part.size(0);
    const Tensor all(shape, parts[0].type(), parts[0].device());
    all.copy_from(parts);
    return all;
  }
};
// Those that wait on this thread, by slot and by what they will do; the slots own them.
thread_local std::map<std::pair<const Slot*, Waiting::Write>, std::weak_ptr<Waiting>> waiting;

void wait(const Waiting& query) {
  std::weak_ptr<Waiting>& known = waiting[{query.words, query.write}];
  std::shared_ptr<Waiting> here = known.lock();
  if (!here) {
    known = here = std::make_shared<Waiting>(query);
    return here->words->at_last([here] { here->write(*here); });
  }
  here->sentence.push_back(query.sentence[0]);
  here->e.push_back(query.e[0]);
  here->q.push_back(query.q[0]);
}

bool gathers_late(const Tensor& x) {
  return std::visit([](auto on) { return kernel::gathers_late(on); }, x.device());
}

// k_j += Σ_i e_ij q_i
void gather_spread(const std::shared_ptr<Slot>& words, const Lookup& look, const Tensor& e,
                   const Tensor& q) {
  if (!words) return;
  const auto write = [](const Waiting& all) {
    all.words->gather([&](const Tensor& dk, Fold fold) {
      spread(all.look(), all.joined(all.e), all.joined(all.q), dk, fold);
    });
  };
  const Waiting now{words.get(), look.memory, write, {look.sentence}, {e}, {q}};
  gathers_late(q) ? wait(now) : write(now);
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
    gather_spread(keys.slot(), look, de, q);  // dk_j = Σ_i de_ij q_i
  });
}

namespace {

// The gradients of queries, words and v, which all need the same tanh; of those there are.
void additive_back(const Waiting& all, Slot* queries) {
  const Tensor q = all.joined(all.q), de = all.joined(all.e);
  const Lookup look = all.look();
  gather_or_skip(queries, [&](const Tensor& dq, Fold fold_q) {
    gather_or_skip(all.words, [&](const Tensor& dk, Fold fold_k) {
      gather_or_skip(all.v.slot().get(), [&](const Tensor& dv, Fold fold_v) {
        run_words(q, all.keys, [&]<class T>(auto on, T, auto keys) {
          kernel::additive_scores_grad<T>(
              on, looking(look), q.in<T>(), keys, all.v.data<T>(), de.in<T>(),
              {dq.out<T>(), dk.out<T>(), dv.data<T>(), fold_q, fold_k, fold_v});
        });
      });
    });
  });
}
void additive_back(const Waiting& all) { additive_back(all, nullptr); }

}  // namespace

Tensor additive_scores(const Tensor& q, const Tensor& keys, const Tensor& v, const Lookup& look) {
  assert(q.cols() == keys.cols() && q.cols() == v.elements());
  assert(keys.rows() == look.memory.tokens && (!q.slot() || q.slot() != keys.slot()));
  Tensor e = scores_like(q, look);
  run_words(q, keys, [&]<class T>(auto on, T, auto words) {
    kernel::additive_scores<T>(on, looking(look), q.in<T>(), words, v.data<T>(), e.out<T>());
  });
  return record(e, {q, keys, v}, [=](const Tensor& de) {
    const Waiting now{keys.slot().get(),
                      look.memory,
                      additive_back,
                      {look.sentence},
                      {de},
                      {q},
                      keys.view(keys.shape()),
                      v};
    if (!keys.slot() || !gathers_late(q)) return additive_back(now, q.slot().get());
    gather(q.slot(), [&](const Tensor& dq, Fold fold) {
      run_words(q, keys, [&]<class T>(auto on, T, auto words) {
        kernel::additive_scores_grad<T>(on, looking(look), q.in<T>(), words, v.data<T>(),
                                        de.in<T>(), {.dq = dq.out<T>(), .fold_q = fold});
      });
    });
    wait(now);
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
  blend(look, alpha, h, c, Fold::set, bf16_activations(c.device()) ? c.make_rounded() : Tensor());
  return record(c, {alpha, h}, [=](const Tensor& dc) {
    gather(alpha.slot(), [&](const Tensor& da, Fold fold) {  // dα_ij = dc_i · h_j
      dot(look, dc, h, da, fold);
    });
    gather_spread(h.slot(), look, alpha, dc);  // dh_j = Σ_i α_ij dc_i
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

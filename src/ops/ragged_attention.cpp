#include "ops/ragged_attention.h"

#include <map>
#include <utility>

#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/ragged_attention_kernel.h"
#include "ops/shape.h"
#include "ops/softmax_kernel.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

kernel::RaggedIndex index_of(const RaggedQueries& ragged) {
  return {ragged.memory.offsets.data<int32_t>(), ragged.sentence.data<int32_t>(),
          ragged.memory.sentences, ragged.queries()};
}

Tensor scores_like(const Tensor& q, const RaggedQueries& ragged) {
  assert(q.rows() == ragged.queries());
  return {{ragged.queries(), ragged.columns()}, q.type(), q.device()};
}

// Calls launch(on, T, words). If `words` has a bf16 copy, a GPU reads that copy, because each step
// of a decoder reads all words.
template <class Launch>
void run_words(const Tensor& q, const Tensor& words, Launch launch) {
  run(q, [&]<class T>(auto on, T) {
    if constexpr (!std::is_same_v<decltype(on), Cpu>)
      if (const Tensor copy = words.rounded()) return launch(on, T{}, copy.in<bf16>());
    launch(on, T{}, words.in<T>());
  });
}

// The three products that relate queries q, words k and the matrix e, see
// ragged_attention_kernel.h. The gradients of each product are the other two products.
void dot(const RaggedQueries& ragged, const Tensor& q, const Tensor& k, const Tensor& e,
         OutputMode fold) {
  run_words(q, k, [&]<class T>(auto on, T, auto words) {
    kernel::ragged_dot(on, index_of(ragged), q.in<T>(), words, e.out<T>(), fold);
  });
}
void sum_over_words(const RaggedQueries& ragged, const Tensor& e, const Tensor& k, const Tensor& q,
                    OutputMode fold, const Tensor& rounded = {}) {
  run_words(q, k, [&]<class T>(auto on, T, auto words) {
    kernel::sum_over_words(on, index_of(ragged), e.in<T>(), words, q.out<T>(), fold,
                           rounded.out<bf16>());
  });
}
void sum_over_queries(const RaggedQueries& ragged, const Tensor& e, const Tensor& q,
                      const Tensor& k, OutputMode fold) {
  run(q, [&]<class T>(auto on, T) {
    kernel::sum_over_queries(on, index_of(ragged), e.in<T>(), q.in<T>(), k.out<T>(), fold);
  });
}

// Like gather(), but calls write even if there is no slot, then with an absent tensor. Some kernels
// compute several gradients, so they run if any of the gradients is required.
void gather_or_skip(GradientSlot* slot,
                    const std::function<void(const Tensor& dx, OutputMode fold)>& write) {
  slot ? slot->gather(write) : write({}, OutputMode::set);
}

// Note [Deferred word gradients]
// A recurrent decoder attends to the same words at each of its steps. Updating the gradient of all
// words at each step would be slow. Instead, the backward pass collects the queries of all steps.
// When it reaches the words, it computes their gradient from all queries at once.
struct PendingGradient {
  using Write = void (*)(const PendingGradient& all);
  GradientSlot* words;  // gradient slot of the words; it owns this object
  SentenceOffsets memory;
  Write write;
  std::vector<Tensor> sentence, e, q;  // one entry per call of defer()
  Tensor keys = {}, v = {};            // only for additive scores; `keys` has no gradient slot

  RaggedQueries ragged() const { return {memory, joined(sentence)}; }
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
// The pending gradients of this thread, by slot of the words and by function. The slots own them.
thread_local std::map<std::pair<const GradientSlot*, PendingGradient::Write>,
                      std::weak_ptr<PendingGradient>>
    pending;

void defer(const PendingGradient& query) {
  std::weak_ptr<PendingGradient>& known = pending[{query.words, query.write}];
  std::shared_ptr<PendingGradient> here = known.lock();
  if (!here) {
    known = here = std::make_shared<PendingGradient>(query);
    return here->words->at_last([here] { here->write(*here); });
  }
  here->sentence.push_back(query.sentence[0]);
  here->e.push_back(query.e[0]);
  here->q.push_back(query.q[0]);
}

bool defers_word_gradients(const Tensor& x) {
  return std::visit([](auto on) { return kernel::defers_word_gradients(on); }, x.device());
}

// Adds Σ_i e_ij q_i to the gradient of each word j, at once or deferred (Note [Deferred word
// gradients]).
void gather_sum_over_queries(const std::shared_ptr<GradientSlot>& words,
                             const RaggedQueries& ragged, const Tensor& e, const Tensor& q) {
  if (!words) return;
  const auto write = [](const PendingGradient& all) {
    all.words->gather([&](const Tensor& dk, OutputMode fold) {
      sum_over_queries(all.ragged(), all.joined(all.e), all.joined(all.q), dk, fold);
    });
  };
  const PendingGradient now{words.get(), ragged.memory, write, {ragged.sentence}, {e}, {q}};
  defers_word_gradients(q) ? defer(now) : write(now);
}

}  // namespace

Tensor RaggedQueries::lengths() const {
  Tensor n({queries()}, ElementType::i32, sentence.device());
  std::visit([&](auto on) { kernel::lengths(on, index_of(*this), n.data<int32_t>()); }, n.device());
  return n;
}

Tensor RaggedQueries::lengths_as(ElementType type, int64_t most) const {
  Tensor n({queries(), 1}, type, sentence.device());
  run(n, [&]<class T>(auto on, T) { kernel::lengths_as(on, index_of(*this), most, n.data<T>()); });
  return n;
}

Tensor dot_scores(const Tensor& q, const Tensor& keys, const RaggedQueries& ragged) {
  assert(q.cols() == keys.cols() && keys.rows() == ragged.memory.tokens);
  Tensor e = scores_like(q, ragged);
  dot(ragged, q, keys, e, OutputMode::set);
  return record(e, {q, keys}, [=](const Tensor& de) {
    gather(q.slot(), [&](const Tensor& dq, OutputMode fold) {  // dq_i = Σ_j de_ij k_j
      sum_over_words(ragged, de, keys, dq, fold);
    });
    gather_sum_over_queries(keys.slot(), ragged, de, q);  // dk_j = Σ_i de_ij q_i
  });
}

namespace {

// Computes the required gradients among those of queries, words and v. One kernel computes all of
// them, because they need the same tanh.
void additive_backward(const PendingGradient& all, GradientSlot* queries) {
  const Tensor q = all.joined(all.q), de = all.joined(all.e);
  const RaggedQueries ragged = all.ragged();
  gather_or_skip(queries, [&](const Tensor& dq, OutputMode fold_q) {
    gather_or_skip(all.words, [&](const Tensor& dk, OutputMode fold_k) {
      gather_or_skip(all.v.slot().get(), [&](const Tensor& dv, OutputMode fold_v) {
        run_words(q, all.keys, [&]<class T>(auto on, T, auto keys) {
          kernel::additive_scores_grad<T>(
              on, index_of(ragged), q.in<T>(), keys, all.v.data<T>(), de.in<T>(),
              {dq.out<T>(), dk.out<T>(), dv.data<T>(), fold_q, fold_k, fold_v});
        });
      });
    });
  });
}
void additive_backward(const PendingGradient& all) { additive_backward(all, nullptr); }

}  // namespace

Tensor additive_scores(const Tensor& q, const Tensor& keys, const Tensor& v,
                       const RaggedQueries& ragged) {
  assert(q.cols() == keys.cols() && q.cols() == v.elements());
  assert(keys.rows() == ragged.memory.tokens && (!q.slot() || q.slot() != keys.slot()));
  Tensor e = scores_like(q, ragged);
  run_words(q, keys, [&]<class T>(auto on, T, auto words) {
    kernel::additive_scores<T>(on, index_of(ragged), q.in<T>(), words, v.data<T>(), e.out<T>());
  });
  return record(e, {q, keys, v}, [=](const Tensor& de) {
    const PendingGradient now{keys.slot().get(),
                              ragged.memory,
                              additive_backward,
                              {ragged.sentence},
                              {de},
                              {q},
                              keys.view(keys.shape()),
                              v};
    if (!keys.slot() || !defers_word_gradients(q)) return additive_backward(now, q.slot().get());
    gather(q.slot(), [&](const Tensor& dq, OutputMode fold) {
      run_words(q, keys, [&]<class T>(auto on, T, auto words) {
        kernel::additive_scores_grad<T>(on, index_of(ragged), q.in<T>(), words, v.data<T>(),
                                        de.in<T>(), {.dq = dq.out<T>(), .fold_q = fold});
      });
    });
    defer(now);
  });
}

Tensor softmax_within(const Tensor& e, const ColumnRanges& ranges) {
  assert(ranges.low.elements() == e.rows() && ranges.high.elements() == e.rows());
  Tensor y = Tensor::like(e);
  run(e, [&]<class T>(auto on, T) {
    kernel::softmax_within(on, e.in<T>(), ranges.low.data<int32_t>(), ranges.high.data<int32_t>(),
                           y.out<T>());
  });
  return record(y, {e}, [y, slot = e.slot()](const Tensor& dy) {  // de = y (dy − ⟨y, dy⟩)
    gather(slot, [&](const Tensor& de, OutputMode fold) {
      run(y, [&]<class T>(auto on, T) {
        kernel::softmax_grad(on, y.in<T>(), dy.in<T>(), de.out<T>(), fold);
      });
    });
  });
}

Tensor weighted_sum(const Tensor& alpha, const Tensor& h, const RaggedQueries& ragged) {
  assert(alpha.rows() == ragged.queries() && alpha.cols() == ragged.columns());
  assert(h.rows() == ragged.memory.tokens);
  Tensor c({ragged.queries(), h.cols()}, h.type(), h.device());
  sum_over_words(ragged, alpha, h, c, OutputMode::set,
                 bf16_activations(c.device()) ? c.make_rounded() : Tensor());
  return record(c, {alpha, h}, [=](const Tensor& dc) {
    gather(alpha.slot(), [&](const Tensor& da, OutputMode fold) {  // dα_ij = dc_i · h_j
      dot(ragged, dc, h, da, fold);
    });
    gather_sum_over_queries(h.slot(), ragged, alpha, dc);  // dh_j = Σ_i α_ij dc_i
  });
}

namespace {

// Calls body(i, first word, number of words) for each query i and concatenates the resulting rows.
template <class Body>
Tensor query_by_query(const RaggedQueries& ragged, Body body) {
  std::vector<Tensor> parts;
  const int32_t* offsets = ragged.memory.offsets.data<int32_t>();
  for (int64_t i = 0; i < ragged.queries(); ++i) {
    const int32_t b = ragged.sentence.data<int32_t>()[i];
    parts.push_back(body(i, offsets[b], offsets[b + 1] - offsets[b]));
  }
  return concat_rows(parts);
}

}  // namespace

Tensor additive_scores_reference(const Tensor& q, const Tensor& keys, const Tensor& v,
                                 const RaggedQueries& ragged) {
  const Tensor row = reshape(v, {1, v.elements()});
  return query_by_query(ragged, [&](int64_t i, int64_t first, int64_t words) {
    const Tensor k = rows(keys, first, words);
    const Tensor e = transpose(linear(tanh(rows(q, i, 1) + k), row));  // v · tanh(q_i + k_j)
    const int64_t rest = ragged.columns() - words;
    return rest ? concat(e, Tensor::zeros({1, rest}, e.type(), e.device())) : e;
  });
}

Tensor weighted_sum_reference(const Tensor& alpha, const Tensor& h, const RaggedQueries& ragged) {
  return query_by_query(ragged, [&](int64_t i, int64_t first, int64_t words) {
    return matmul(columns(rows(alpha, i, 1), 0, words), rows(h, first, words));  // Σ_j α_ij h_j
  });
}

}  // namespace fovea

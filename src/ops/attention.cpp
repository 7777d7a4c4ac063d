#include "ops/attention.h"

#include <cmath>
#include <functional>

#include "ops/attention_kernel.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/shape.h"
#include "ops/softmax.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// The arguments of attention: the matrices and columns that hold queries, keys and values, and
// options.
struct Operands {
  Tensor q, kv;
  int64_t key_column;  // first column of the keys in kv; the columns of the values follow
  SentenceOffsets queries, keys;
  HeadsOptions options;
  int64_t size;  // D, the width of all heads together
};

template <class T>
kernel::AttentionInput<T> kernel_input(const Operands& in) {
  const int64_t D = in.size;
  return {{in.q.data<T>(), in.q.cols()},
          {in.kv.data<T>() + in.key_column, in.kv.cols()},
          {in.kv.data<T>() + in.key_column + D, in.kv.cols()},
          in.queries.offsets.data<int32_t>(),
          in.keys.offsets.data<int32_t>(),
          in.queries.sentences,
          in.options.heads,
          D / in.options.heads,
          in.options.mask,
          in.options.dropout,
          in.queries.longest,
          in.keys.longest,
          kernel::DistanceScores<SumType<T>>::of(in.options.distance_scores)};
}

// The results of the forward pass: y [N, D], and log_sums [N, heads], which the gradient needs.
struct Forward {
  Tensor y, log_sums;
};

Forward forward(const Operands& in) {
  Forward f;
  f.y = Tensor({in.q.rows(), in.size}, in.q.type(), in.q.device());
  run_activation(in.q, [&]<class T>(auto on, T) {
    using W = SumType<T>;
    if (Tape::live())
      f.log_sums = Tensor({in.q.rows(), in.options.heads}, type_of<W>(), in.q.device());
    kernel::attention(on, kernel_input<T>(in), kernel::StridedRows<T>{f.y.data<T>(), in.size},
                      f.log_sums.data<W>(), static_cast<W*>(nullptr));
  });
  return f;
}

// A gradient that an operation adds to.
struct GradientTarget {
  Tensor to;  // may be absent
  OutputMode fold = OutputMode::set;
};

void backward(const Operands& in, const Forward& f, const Tensor& dy, const GradientTarget& dq,
              const GradientTarget& dkv) {
  const auto run_back = [&](const GradientTarget& ds) {
    run_activation(in.q, [&]<class T>(auto on, T) {
      const kernel::AttentionGrad<T> out{
          {dq.to.data<T>(), dq.to.cols()},
          {dkv.to.data<T>() + in.key_column, dkv.to.cols()},
          {dkv.to.data<T>() + in.key_column + in.size, dkv.to.cols()},
          dq.fold,
          dkv.fold,
          ds.to.data<SumType<T>>(),
          ds.fold};
      using Read = kernel::StridedRows<const T>;
      kernel::attention_grad(on, kernel_input<T>(in), Read{f.y.data<T>(), in.size},
                             Read{dy.data<T>(), in.size},
                             static_cast<const SumType<T>*>(f.log_sums.data<SumType<T>>()), out);
    });
  };
  const Tensor& scores = in.options.distance_scores;
  if (!scores || !scores.slot()) return run_back({});
  gather(scores.slot(), [&](const Tensor& ds, OutputMode fold) { run_back({ds, fold}); });
}

Tensor weights_of(const Operands& in) {
  int64_t total = 0;
  const Tensor query_offsets = in.queries.offsets.to(Cpu{}),
               key_offsets = in.keys.offsets.to(Cpu{});
  const int32_t *q = query_offsets.data<int32_t>(), *k = key_offsets.data<int32_t>();
  for (int64_t b = 0; b < in.queries.sentences; ++b)
    total += in.options.heads * int64_t{q[b + 1] - q[b]} * (k[b + 1] - k[b]);
  Tensor weights({total}, in.q.type(), in.q.device());
  run(in.q, [&]<class T>(auto on, T) {
    kernel::attention<T>(on, kernel_input<T>(in), {}, nullptr, weights.data<T>());
  });
  return weights;
}

// Calls `write` with the gradient of x. If x needs none, with temporary memory: the kernel computes
// both gradients.
void gather_or_discard(const Tensor& x,
                       const std::function<void(const Tensor& dx, OutputMode fold)>& write) {
  x.slot() ? x.slot()->gather(write) : write(Tensor::like(x), OutputMode::set);
}

// Sentences must not be longer than the distance scores allow.
[[maybe_unused]] bool reaches(const Tensor& scores, const SentenceOffsets& sentences) {
  return !scores || scores.rows() >= 2 * sentences.longest - 1;
}

Operands self_operands(const Tensor& qkv, const SentenceOffsets& sentences,
                       const HeadsOptions& options) {
  assert(reaches(options.distance_scores, sentences));
  return {qkv, qkv, qkv.cols() / 3, sentences, sentences, options, qkv.cols() / 3};
}
Operands cross_operands(const Tensor& q, const Tensor& kv, const SentenceOffsets& queries,
                        const SentenceOffsets& keys, const HeadsOptions& options) {
  assert(kv.cols() == 2 * q.cols() && reaches(options.distance_scores, queries) &&
         reaches(options.distance_scores, keys));
  return {q, kv, 0, queries, keys, options, q.cols()};
}

}  // namespace

Tensor self_attention(const Tensor& qkv, const SentenceOffsets& sentences,
                      const HeadsOptions& options) {
  const Operands in = self_operands(qkv, sentences, options);
  const Forward f = forward(in);
  return record(f.y, {qkv, options.distance_scores}, [=](const Tensor& dy) {
    gather_or_discard(in.q, [&](const Tensor& d, OutputMode fold) {
      backward(in, f, dy, {d, fold}, {d, fold});
    });
  });
}

Tensor cross_attention(const Tensor& q, const Tensor& kv, const SentenceOffsets& queries,
                       const SentenceOffsets& keys, const HeadsOptions& options) {
  const Operands in = cross_operands(q, kv, queries, keys, options);
  const Forward f = forward(in);
  return record(f.y, {q, kv, options.distance_scores}, [=](const Tensor& dy) {
    gather_or_discard(in.q, [&](const Tensor& dq, OutputMode fold_q) {
      gather_or_discard(in.kv, [&](const Tensor& dkv, OutputMode fold_kv) {
        backward(in, f, dy, {dq, fold_q}, {dkv, fold_kv});
      });
    });
  });
}

namespace {

// The distance scores of head h for all queries and keys of a sentence: [queries, keys].
Tensor distance_matrix(const Tensor& scores, int64_t h, int64_t queries, int64_t keys) {
  const int64_t reach = (scores.rows() - 1) / 2;
  const Tensor of_head = transpose(columns(scores, h, 1));
  std::vector<Tensor> each;
  for (int64_t i = 0; i < queries; ++i) each.push_back(columns(of_head, reach - i, keys));
  return concat_rows(each);
}

}  // namespace

Tensor cross_attention_reference(const Tensor& q, const Tensor& kv, const SentenceOffsets& queries,
                                 const SentenceOffsets& keys, const HeadsOptions& options) {
  const int64_t D = q.cols(), d_k = D / options.heads;
  const Tensor query_offsets = queries.offsets.to(Cpu{}), key_offsets = keys.offsets.to(Cpu{});
  const int32_t *from = query_offsets.data<int32_t>(), *to = key_offsets.data<int32_t>();
  std::vector<Tensor> sentences;
  for (int64_t b = 0; b < queries.sentences; ++b) {
    const int64_t T = from[b + 1] - from[b], S = to[b + 1] - to[b];
    const Tensor q_b = rows(q, from[b], T), kv_b = rows(kv, to[b], S);
    std::vector<double> seen(static_cast<size_t>(T * S), 1);
    for (int64_t i = 0; i < T; ++i)
      for (int64_t j = 0; j < S; ++j)
        if (options.mask == AttentionMask::causal && j > i)
          seen[static_cast<size_t>(i * S + j)] = 0;
    const Tensor keep = Tensor::of({T, S}, seen, q.type(), q.device());
    std::vector<Tensor> heads;
    for (int64_t h = 0; h < options.heads; ++h) {
      const Tensor Q = columns(q_b, h * d_k, d_k), K = columns(kv_b, h * d_k, d_k),
                   V = columns(kv_b, D + h * d_k, d_k);
      const double scale = 1 / std::sqrt(static_cast<double>(d_k));
      Tensor scores = matmul(Q, transpose(K)) * scale;
      if (options.distance_scores)
        scores = scores + distance_matrix(options.distance_scores, h, T, S);
      heads.push_back(matmul(softmax(scores, keep), V));
    }
    sentences.push_back(concat_columns(heads));
  }
  return concat_rows(sentences);
}

Tensor self_attention_weights(const Tensor& qkv, const SentenceOffsets& sentences,
                              const HeadsOptions& options) {
  return weights_of(self_operands(qkv, sentences, options));
}

Tensor cross_attention_weights(const Tensor& q, const Tensor& kv, const SentenceOffsets& queries,
                               const SentenceOffsets& keys, const HeadsOptions& options) {
  return weights_of(cross_operands(q, kv, queries, keys, options));
}

Tensor attend_remembered(const Tensor& q, const CachedRows& memory, int64_t heads,
                         const Tensor& distance_scores) {
  assert(q.device() == Device{Cpu{}});
  Tensor y = Tensor::like(q);
  run(q, [&]<class T>(auto on, T) {
    if constexpr (std::is_same_v<decltype(on), Cpu>)
      kernel::attend_remembered<T>(on, q.in<T>(), memory.kv.in<T>(), memory.index.in<int32_t>(),
                                   memory.lengths.data<int32_t>(), heads,
                                   kernel::DistanceScores<T>::of(distance_scores), y.out<T>());
  });
  return y;
}

}  // namespace fovea

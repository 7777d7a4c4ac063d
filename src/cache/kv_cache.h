#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cache/device_beam.h"
#include "tensor/tensor.h"

namespace fovea {

struct DecoderShape {
  int64_t layers, size, heads;  // size = D: the columns of queries, heads · d_k
  int64_t state = 0;            // columns of the recurrent state of a layer; 0: self-attention
};

// The key/value cache of a Transformer decoder. For each live row (hypothesis), it holds the keys
// and values of the row's previous words and of its source. It also runs the decoding steps. It has
// no gradients, because it only supports decoding. Not thread-safe.
class DecoderMemory {
 public:
  // The rows of a step, as the computation sees them. Padding rows may follow the live rows. Their
  // results are ignored.
  struct Rows {
    Tensor words, places;  // i32: the input word of each row, and its position in its sentence
  };
  // The inputs of a step: the words, and one tensor (`constant`) that the computation reads. The
  // next step may pass another tensor.
  struct Next {
    std::span<const int32_t> words;
    int32_t place;  // position of the new word in the rows that have steps() words
    Tensor constant;
  };
  // Computes a step. For each layer it calls attend_words or average_words, then attend_source. At
  // the end it calls scores. Except for its rows and the constant, it must not depend on anything
  // that changes between two steps: see Note [Replays].
  using Compute = std::function<Tensor(const Rows& rows)>;

  DecoderMemory() = default;
  virtual ~DecoderMemory() = default;
  DecoderMemory(const DecoderMemory&) = delete;
  DecoderMemory& operator=(const DecoderMemory&) = delete;

  // Starts a new batch with one row for each sentence. source_kv has one tensor [source tokens, 2D]
  // per layer, in the element type of activations.
  virtual void start(std::vector<Tensor> source_kv, std::span<const int32_t> offsets) = 0;
  // Adds one row for each new sentence after the existing rows. Supported only on the CPU.
  virtual void join(std::vector<Tensor> source_kv, std::span<const int32_t> offsets);
  // Releases the memory of all cached keys and values.
  virtual void forget() = 0;
  // Row i becomes a copy of the row that was row parents[i] before the call.
  virtual void reorder(std::span<const int32_t> parents) = 0;
  // Computes one step, which adds one word to each row. Returns the scores [rows, …]. They are
  // valid until the next step.
  virtual Tensor step(const Next& next, const Compute& compute) = 0;

  // Search on the device, supported only on a GPU: see Note [Ahead]. From the first step on, call
  // these two functions instead of reorder() and step(). device_step() selects the rows of the next
  // step, at most `capacity`, and starts that step. If `capacity` is 0, there is no next step. It
  // returns the results of the previous step; the first call has no results to return. Only the
  // first call uses next.words.
  virtual void start_device_search(const BeamRules& rules);
  virtual const BeamStepResult& device_step(int64_t capacity, const Next& next,
                                            const Compute& compute);

  // Both attentions return, for each row, Concat_i(softmax(q_i k_iᵀ / √d_k) v_i): [rows, D]. qkv
  // [rows, 3D] belongs to the new words; attend_words() caches their keys and values. q is [rows,
  // D]. distance_scores: see HeadsOptions.
  virtual Tensor attend_words(int64_t layer, const Tensor& qkv, const Tensor& distance_scores) = 0;
  // Returns, for each row, c = f c' + (1 − f) x, where c' is the result for the row's word before,
  // or 0. f and x are [rows, state], as sums.
  virtual Tensor average_words(int64_t layer, const Tensor& f, const Tensor& x) = 0;
  virtual Tensor attend_source(int64_t layer, const Tensor& q) = 0;
  // Returns the scores x Wᵀ + b of a step.
  virtual Tensor scores(const Tensor& x, const Tensor& W, const Tensor& b) = 0;

  virtual int64_t rows() const = 0;   // during a search on the device: the number at its start
  virtual int64_t steps() const = 0;  // number of words of the longest row
};

std::unique_ptr<DecoderMemory> decoder_memory(const DecoderShape& shape, Device device);

namespace kernel {
std::unique_ptr<DecoderMemory> decoder_memory(Cpu, const DecoderShape& shape);
std::unique_ptr<DecoderMemory> decoder_memory(Cuda on, const DecoderShape& shape);
}  // namespace kernel

}  // namespace fovea

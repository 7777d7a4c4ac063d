#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ops/steering.h"
#include "tensor/tensor.h"

namespace fovea {

struct DecoderShape {
  int64_t layers, size, heads;  // size = D
};

// What the decoder of a Transformer remembers, keys and values of each live row's words so far and
// of its source, and how a step is computed with it. No gradient: this is for decoding.
class DecoderMemory {
 public:
  // The rows of a step, as what computes it sees them. There may be more of them than are alive:
  // nothing comes of those.
  struct Rows {
    Tensor words, places;  // i32: the words that go in, and the place of each in its sentence
  };
  // What goes in, and a tensor that the computation reads and that may be another in another step.
  struct Next {
    std::span<const int32_t> words;
    int32_t place;  // of the words in rows that were fed steps() before; none is behind it
    Tensor constant;
  };
  // Calls attend_words and attend_source once for each layer, and ends with scores. Beside its rows
  // and the constant it may depend on nothing that changes between two steps: see Note [Replays].
  using Compute = std::function<Tensor(const Rows& rows)>;

  DecoderMemory() = default;
  virtual ~DecoderMemory() = default;
  DecoderMemory(const DecoderMemory&) = delete;
  DecoderMemory& operator=(const DecoderMemory&) = delete;

  // Begins anew with a row for each sentence; source_kv: per layer [source tokens, 2D],
  // activations.
  virtual void start(std::vector<Tensor> source_kv, std::span<const int32_t> offsets) = 0;
  // Adds a row for each of these sentences, which begin now, behind those that are under way. On
  // the host alone.
  virtual void join(std::vector<Tensor> source_kv, std::span<const int32_t> offsets);
  // Gives back the memory that only what is remembered needs.
  virtual void forget() = 0;
  // Row i becomes what row parents[i] was.
  virtual void reorder(std::span<const int32_t> parents) = 0;
  // Feeds one word to each row. The scores [rows, …] that come of it hold until the next step.
  virtual Tensor step(const Next& next, const Compute& compute) = 0;

  // From the first step on, instead of reorder() and step(), where this device can: see Note
  // [Ahead]. Chooses the rows of the next step and begins it, with room for so many; next.words are
  // for the first one alone. With no room there is none to come. Returns what came of the step
  // before, nothing at first.
  virtual bool steer(const Steering&) { return false; }
  virtual const Steered& step_ahead(int64_t room, const Next& next, const Compute& compute);

  // For each row Concat_i(softmax(q_i k_iᵀ / √d_k) v_i). qkv [rows, 3D] are those of the new words,
  // whose keys and values are remembered; q [rows, D].
  virtual Tensor attend_words(int64_t layer, const Tensor& qkv) = 0;
  virtual Tensor attend_source(int64_t layer, const Tensor& q) = 0;
  // x Wᵀ + b.
  virtual Tensor scores(const Tensor& x, const Tensor& W, const Tensor& b) = 0;

  virtual int64_t rows() const = 0;   // while steered: those that it began with
  virtual int64_t steps() const = 0;  // words fed so far to the row that was fed most
};

std::unique_ptr<DecoderMemory> decoder_memory(const DecoderShape& shape, Device device);

namespace kernel {
std::unique_ptr<DecoderMemory> decoder_memory(Cpu, const DecoderShape& shape);
std::unique_ptr<DecoderMemory> decoder_memory(Cuda on, const DecoderShape& shape);
}  // namespace kernel

}  // namespace fovea

#include "vectors/skip_gram.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random.h"
#include "tensor/memory.h"
#include "vectors/skip_gram_pairs.h"

namespace fovea {
namespace {

constexpr int64_t kMaxChunkWords = 524'288;  // the pairs of such a chunk take about 50 MiB
constexpr int64_t kMinChunkWords = 1'000,
                  kMinChunks = 50;  // minimum words per chunk; minimum chunks of a short text
constexpr int64_t kMinSharedWords = 1'500;  // with fewer words, one thread is faster than several
constexpr int64_t kSlices = 16;             // slices per chunk, sampled in parallel
constexpr double kLastRate = 1e-4;          // final rate as a fraction of the initial rate
constexpr int64_t kLanes = kernel::kSkipGramLanes;

// Both tables of vectors. Their rows begin at multiples of 64 bytes.
class VectorTables {
 public:
  VectorTables(int64_t rows, int64_t size, uint64_t seed)
      : rows_(rows), size_(size), stride_((size + kLanes - 1) / kLanes * kLanes),
        memory_(allocate(2 * rows_ * stride_ * sizeof(float), Cpu{})) {
    std::fill_n(input(), 2 * rows_ * stride_, 0.0f);
    Random random(seed);
    const double bound = 0.5 / static_cast<double>(size);
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t j = 0; j < size_; ++j)
        input()[i * stride_ + j] = static_cast<float>(random.uniform(-bound, bound));
  }

  kernel::SkipGramTables rows() const { return {input(), input() + rows_ * stride_, stride_}; }
  std::span<const float> vector(int64_t row) const {
    return {input() + row * stride_, static_cast<size_t>(size_)};
  }

 private:
  float* input() const { return reinterpret_cast<float*>(memory_.get()); }
  int64_t rows_, size_, stride_;
  Buffer memory_;
};

// Trains on one chunk of the text after another: see Note [Parts of the vocabulary].
class SkipGramTraining {
 public:
  SkipGramTraining(const WordStream& text, const SkipGramOptions& options)
      : text_(text), options_(options), sampler_(text, options),
        partition_(static_cast<int64_t>(text.words.size())),
        buckets_(kSlices, PairBuckets(partition_)),
        tables_(partition_.rows(), options.size, options.seed) {
    total_ = options.epochs * static_cast<int64_t>(text.ids.size());
    chunk_ = std::clamp(total_ / kMinChunks, kMinChunkWords, kMaxChunkWords);
  }

  void run() {
    for (int64_t epoch = 0; epoch < options_.epochs; ++epoch)
      for (int64_t first = 0; first < text_.sentences();) {
        const int64_t last =
            std::min(sentence_at(text_.offsets[first] + chunk_), text_.sentences());
        const int64_t words = text_.offsets[last] - text_.offsets[first];
        sample(first, last, epoch);
        learn(words);
        done_ += words;
        first = last;
        if (!report()) return;
      }
  }

  WordVectors vectors() const {
    WordVectors vectors(options_.size);
    for (size_t i = 0; i < text_.words.size(); ++i)
      vectors.add(text_.words[i], tables_.vector(partition_.row_of(static_cast<int32_t>(i))));
    return vectors;
  }

 private:
  // The learning rate falls linearly with the number of processed words.
  double rate_after(int64_t words) const {
    const double share = static_cast<double>(words) / static_cast<double>(total_);
    return options_.rate * std::max(kLastRate, 1 - share);
  }

  // The index of the first sentence with at least `words` words before it.
  int64_t sentence_at(int64_t words) const {
    return std::lower_bound(text_.offsets.begin(), text_.offsets.end(), words) -
           text_.offsets.begin();
  }

  // Samples the training pairs of a chunk: sentences [first, last). The random numbers of a slice
  // depend on its position in the text, not on its thread.
  void sample(int64_t first, int64_t last, int64_t epoch) {
    const int64_t begin = text_.offsets[first], words = text_.offsets[last] - begin;
    const auto start_of = [&](int64_t slice) {
      return sentence_at(begin + words * slice / kSlices);
    };
#pragma omp parallel for schedule(dynamic, 1) if (words > kMinSharedWords)
    for (int64_t slice = 0; slice < kSlices; ++slice) {
      const int64_t from = start_of(slice), to = start_of(slice + 1);
      Random key(options_.seed,
                 static_cast<uint64_t>(epoch + 1) << 40 | static_cast<uint64_t>(from));
      buckets_[slice].clear();
      sampler_.sample(from, to, key.bits64(), buckets_[slice]);
    }
  }

  void learn(int64_t words) {
    std::array<std::array<kernel::SkipGramRun, kSlices>, kParts> runs;
    std::array<kernel::SkipGramBlock, kParts> blocks;
    for (int32_t round = 0; round < kParts; ++round) {
      for (int32_t i = 0; i < kParts; ++i) {
        for (int64_t slice = 0; slice < kSlices; ++slice) {
          const auto& pairs = buckets_[slice].pairs[i * kParts + (i + round) % kParts];
          runs[i][slice] = {pairs, static_cast<float>(rate_after(done_ + words * slice / kSlices))};
          pairs_ += static_cast<int64_t>(pairs.size());
        }
        blocks[i] = {runs[i]};
      }
      loss_ += kernel::skip_gram(Cpu{}, tables_.rows(), blocks);
    }
  }

  bool report() {
    check(std::isfinite(loss_), ExitCode::diverged, "the loss is not finite after ", done_,
          " words; set a lower `rate` than ", options_.rate);
    const double mean = pairs_ == 0 ? 0 : loss_ / static_cast<double>(pairs_);
    const int64_t pairs = pairs_;
    loss_ = 0, pairs_ = 0;
    return !options_.progress || options_.progress({done_, total_, mean, rate_after(done_), pairs});
  }

  const WordStream& text_;
  const SkipGramOptions& options_;
  PairSampler sampler_;
  WordPartition partition_;
  std::vector<PairBuckets> buckets_;
  VectorTables tables_;
  int64_t total_ = 0, chunk_ = 0, done_ = 0, pairs_ = 0;
  double loss_ = 0;
};

}  // namespace

WordVectors train_skip_gram(const WordStream& text, const SkipGramOptions& options) {
  check(options.size >= 1 && options.size <= WordVectors::kMaxSize, ExitCode::usage,
        "the vector size is ", options.size, ", expected 1 to ", WordVectors::kMaxSize);
  check(options.window >= 1 && options.negatives >= 1 && options.epochs >= 1, ExitCode::usage,
        "window, negatives and epochs must be at least 1");
  SkipGramTraining training(text, options);
  training.run();
  return training.vectors();
}

}  // namespace fovea

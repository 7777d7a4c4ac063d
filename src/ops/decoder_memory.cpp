#include "ops/decoder_memory.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/shape.h"

namespace fovea {
namespace {

// A step reads all that is remembered; moving it once in eight steps costs little beside that.
constexpr int64_t kStepsOfRoom = 8;

// Note [Remembered rows]
// Keys and values of the words so far stand in one growing matrix per layer. A table gives for
// every live row the place of each of its words. Search reorders the table; keys and values are
// never copied per beam. When a matrix is full, it moves on without what search has dropped.
class HostMemory : public DecoderMemory {
 public:
  explicit HostMemory(const DecoderShape& shape) : shape_(shape) {}

  void start(std::vector<Tensor> source_kv, std::span<const int32_t> offsets) override {
    source_kv_ = std::move(source_kv);
    offsets_.assign(offsets.begin(), offsets.end());
    kv_.assign(source_kv_.size(), {});
    words_.clear();
    rows_ = static_cast<int64_t>(offsets.size()) - 1;
    used_ = steps_ = 0;
    sentence_.resize(static_cast<size_t>(rows_));
    std::iota(sentence_.begin(), sentence_.end(), 0);
    source_ = {};
  }

  void forget() override {
    source_kv_.clear();
    kv_.clear();
    own_ = source_ = {};
  }

  void reorder(std::span<const int32_t> parents) override {
    std::vector<int32_t> words, sentence;
    words.reserve(parents.size() * static_cast<size_t>(steps_ + 1));
    for (const int32_t parent : parents) {
      const auto row = words_.begin() + parent * steps_;
      words.insert(words.end(), row, row + steps_);
      sentence.push_back(sentence_[static_cast<size_t>(parent)]);
    }
    if (sentence != sentence_) source_ = {};
    words_ = std::move(words);
    sentence_ = std::move(sentence);
    rows_ = static_cast<int64_t>(parents.size());
  }

  Tensor step(const Next& next, const Compute& compute) override {
    assert(static_cast<int64_t>(next.words.size()) == rows_);
    make_room();
    add_words();
    if (!source_.index) tabulate_source();
    const std::vector<int32_t> places(next.words.size(), next.place);
    Tensor scores = compute({Tensor::of(next.words), Tensor::of(places)});
    used_ += rows_;
    ++steps_;
    return scores;
  }

  Tensor attend_words(int64_t layer, const Tensor& qkv) override {
    const auto i = static_cast<size_t>(layer);
    copy_columns(qkv, shape_.size, kv_[i].window(used_, rows_));
    own_.kv = kv_[i];
    return attend_remembered(columns(qkv, 0, shape_.size), own_, shape_.heads);
  }

  Tensor attend_source(int64_t layer, const Tensor& q) override {
    source_.kv = source_kv_[static_cast<size_t>(layer)];
    return attend_remembered(q, source_, shape_.heads);
  }

  Tensor scores(const Tensor& x, const Tensor& W, const Tensor& b) override {
    return linear(x, W, b);
  }

  int64_t rows() const override { return rows_; }
  int64_t steps() const override { return steps_; }

 private:
  // Room for one more word per row.
  void make_room() {
    if (kv_[0] && used_ + rows_ <= kv_[0].size(0)) return;
    std::vector<int32_t> moved_to(static_cast<size_t>(used_), -1), kept;
    for (int32_t& word : words_) {
      int32_t& to = moved_to[static_cast<size_t>(word)];
      if (to < 0) {
        to = static_cast<int32_t>(kept.size());
        kept.push_back(word);
      }
      word = to;
    }
    used_ = static_cast<int64_t>(kept.size());
    const Tensor& like = source_kv_[0];
    const Tensor index = Tensor::of(kept);
    for (Tensor& kv : kv_) {
      Tensor larger({used_ + kStepsOfRoom * rows_, like.cols()}, like.type());
      if (used_ > 0) copy_rows(kv, index, larger.window(0, used_));
      kv = larger;
    }
  }

  // Every row has one more word, which stands behind those there are.
  void add_words() {
    std::vector<int32_t> longer;
    longer.reserve(static_cast<size_t>(rows_ * (steps_ + 1)));
    for (int64_t r = 0; r < rows_; ++r) {
      const auto row = words_.begin() + r * steps_;
      longer.insert(longer.end(), row, row + steps_);
      longer.push_back(static_cast<int32_t>(used_ + r));
    }
    words_ = std::move(longer);
    const std::vector<int32_t> lengths(static_cast<size_t>(rows_),
                                       static_cast<int32_t>(steps_ + 1));
    own_ = {{}, Tensor::of(words_).view({rows_, steps_ + 1}), Tensor::of(lengths)};
  }

  void tabulate_source() {
    const auto first = [&](int32_t b) { return offsets_[static_cast<size_t>(b)]; };
    std::vector<int32_t> lengths, index;
    int32_t width = 1;
    for (const int32_t b : sentence_) {
      lengths.push_back(first(b + 1) - first(b));
      width = std::max(width, lengths.back());
    }
    for (const int32_t b : sentence_) {
      const size_t end = index.size() + static_cast<size_t>(width);
      for (int32_t u = first(b); u < first(b + 1); ++u) index.push_back(u);
      index.resize(end, 0);
    }
    source_.index = Tensor::of(index).view({rows_, width});
    source_.lengths = Tensor::of(lengths);
  }

  DecoderShape shape_;
  std::vector<Tensor> source_kv_;  // per layer [source tokens, 2D]
  std::vector<Tensor> kv_;         // per layer [capacity, 2D], the first `used_` rows are filled
  int64_t used_ = 0, steps_ = 0, rows_ = 0;
  std::vector<int32_t> words_;     // [rows, steps]: the places of each row's words
  std::vector<int32_t> sentence_;  // per row
  std::vector<int32_t> offsets_;
  Remembered own_, source_;  // source_ is absent where `sentence_` has changed
};

}  // namespace

const Steered& DecoderMemory::step_ahead(int64_t, const Next&, const Compute&) {
  fail(Exit::unexpected, "this device does not choose by itself");
}

namespace kernel {
std::unique_ptr<DecoderMemory> decoder_memory(Cpu, const DecoderShape& shape) {
  return std::make_unique<HostMemory>(shape);
}
}  // namespace kernel

std::unique_ptr<DecoderMemory> decoder_memory(const DecoderShape& shape, Device device) {
  return std::visit([&](auto on) { return kernel::decoder_memory(on, shape); }, device);
}

}  // namespace fovea

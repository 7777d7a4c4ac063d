#include "cache/kv_cache.h"

#include <algorithm>

#include "base/check.h"
#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/running_average.h"
#include "ops/shape.h"

namespace fovea {
namespace {

// If a matrix is full, space for this number of steps is added. A step reads the whole cache, so
// copying it once in eight steps costs little.
constexpr int64_t kReservedSteps = 8;

// Note [Remembered rows]
// Each layer has one growing matrix with the keys and values of all previous words. Every live row
// stores the index of each of its words in that matrix; rows that joined later have fewer words.
// Search reorders these indices and never copies keys and values per beam. When a matrix is full,
// its live entries are copied to a larger one, without the words that search has dropped. A
// recurrent layer has its state after each word instead of keys and values.
class HostKvCache : public DecoderMemory {
 public:
  explicit HostKvCache(const DecoderShape& shape) : shape_(shape) {}

  void start(std::vector<Tensor> source_kv, std::span<const int32_t> offsets) override {
    source_kv_ = std::move(source_kv);
    kv_.assign(source_kv_.size(), {});
    sources_.clear();
    rows_.clear();
    used_ = 0;
    add_rows(0, offsets);
  }

  void join(std::vector<Tensor> source_kv, std::span<const int32_t> offsets) override {
    const int32_t words = offsets.back();
    if (source_end() + words > source_kv_[0].size(0)) compact_sources(words);
    const int32_t first = source_end();
    for (size_t layer = 0; layer < source_kv.size(); ++layer)
      source_kv_[layer].window(first, words).copy_from(source_kv[layer]);
    add_rows(first, offsets);
  }

  void forget() override {
    source_kv_.clear();
    kv_.clear();
    own_ = source_ = {};
  }

  void reorder(std::span<const int32_t> parents) override {
    std::vector<int32_t> uses(rows_.size(), 0);
    for (const int32_t parent : parents) ++uses[static_cast<size_t>(parent)];
    std::vector<Row> rows;
    rows.reserve(parents.size());
    const std::vector<int32_t> sources_before = sources_of_rows();
    for (const int32_t parent : parents) {
      Row& row = rows_[static_cast<size_t>(parent)];
      if (--uses[static_cast<size_t>(parent)] > 0)
        rows.push_back(row);
      else
        rows.push_back(std::move(row));
    }
    rows_ = std::move(rows);
    if (sources_of_rows() != sources_before) source_ = {};
  }

  Tensor step(const Next& next, const Compute& compute) override {
    assert(next.words.size() == rows_.size());
    reserve_words();
    std::vector<int32_t> places;
    for (const Row& row : rows_)
      places.push_back(std::min(next.place, static_cast<int32_t>(row.words.size())));
    add_words();
    if (!source_.index) build_source_table();
    Tensor scores = compute({Tensor::of(next.words), Tensor::of(places)});
    used_ += rows();
    return scores;
  }

  Tensor attend_words(int64_t layer, const Tensor& qkv, const Tensor& distance_scores) override {
    const auto i = static_cast<size_t>(layer);
    copy_columns(qkv, shape_.size, kv_[i].window(used_, rows()));
    own_.kv = kv_[i];
    return attend_remembered(columns(qkv, 0, shape_.size), own_, shape_.heads, distance_scores);
  }

  Tensor average_words(int64_t layer, const Tensor& f, const Tensor& x) override {
    const Tensor& states = kv_[static_cast<size_t>(layer)];
    std::vector<int32_t> previous;
    for (const Row& row : rows_)
      previous.push_back(row.words.size() > 1 ? row.words[row.words.size() - 2] : -1);
    const Tensor c = average_step(f, x, states, Tensor::of(previous));
    states.window(used_, rows()).copy_from(c);
    return c;
  }

  Tensor attend_source(int64_t layer, const Tensor& q) override {
    source_.kv = source_kv_[static_cast<size_t>(layer)];
    return attend_remembered(q, source_, shape_.heads);
  }

  Tensor scores(const Tensor& x, const Tensor& W, const Tensor& b) override {
    return linear(x, W, b);
  }

  int64_t rows() const override { return std::ssize(rows_); }
  int64_t steps() const override {
    size_t most = 0;
    for (const Row& row : rows_) most = std::max(most, row.words.size());
    return static_cast<int64_t>(most);
  }

 private:
  struct Row {
    int32_t source;              // index of its source sentence in sources_
    std::vector<int32_t> words;  // for each word, its row in kv_
  };
  struct Source {
    int32_t first, words;  // index of the first row in source_kv_, number of rows
  };

  int32_t source_end() const {
    return sources_.empty() ? 0 : sources_.back().first + sources_.back().words;
  }

  std::vector<int32_t> sources_of_rows() const {
    std::vector<int32_t> sources;
    sources.reserve(rows_.size());
    for (const Row& row : rows_) sources.push_back(row.source);
    return sources;
  }

  void add_rows(int32_t first, std::span<const int32_t> offsets) {
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      rows_.push_back({static_cast<int32_t>(sources_.size()), {}});
      sources_.push_back({first + offsets[i], offsets[i + 1] - offsets[i]});
    }
    source_ = {};
  }

  // Copies the sources that rows still use to larger matrices. These have twice the space that the
  // copied sources and `words` more words need.
  void compact_sources(int32_t words) {
    std::vector<int32_t> new_index(sources_.size(), -1), kept;
    std::vector<Source> sources;
    for (Row& row : rows_) {
      int32_t& to = new_index[static_cast<size_t>(row.source)];
      if (to < 0) {
        const Source& from = sources_[static_cast<size_t>(row.source)];
        to = static_cast<int32_t>(sources.size());
        sources.push_back({static_cast<int32_t>(kept.size()), from.words});
        for (int32_t u = 0; u < from.words; ++u) kept.push_back(from.first + u);
      }
      row.source = to;
    }
    sources_ = std::move(sources);
    const Tensor index = Tensor::of(kept);
    const int64_t used = index.elements();
    for (Tensor& kv : source_kv_) {
      Tensor larger({2 * (used + words), kv.cols()}, kv.type());
      if (used > 0) copy_rows(kv, index, larger.window(0, used));
      kv = larger;
    }
  }

  // Reserves space in kv_ for one more word of each row.
  void reserve_words() {
    if (kv_[0] && used_ + rows() <= kv_[0].size(0)) return;
    std::vector<int32_t> new_index(static_cast<size_t>(used_), -1), kept;
    for (Row& row : rows_)
      for (int32_t& word : row.words) {
        int32_t& to = new_index[static_cast<size_t>(word)];
        if (to < 0) {
          to = static_cast<int32_t>(kept.size());
          kept.push_back(word);
        }
        word = to;
      }
    used_ = static_cast<int64_t>(kept.size());
    const Tensor& like = source_kv_[0];
    const int64_t width = shape_.state > 0 ? shape_.state : like.cols();
    const Tensor index = Tensor::of(kept);
    for (Tensor& kv : kv_) {
      Tensor larger({used_ + kReservedSteps * rows(), width}, like.type());
      if (used_ > 0) copy_rows(kv, index, larger.window(0, used_));
      kv = larger;
    }
  }

  // Adds one word to every row. The new words are the rows used_, used_ + 1, … of kv_.
  void add_words() {
    auto place = static_cast<int32_t>(used_);
    for (Row& row : rows_) row.words.push_back(place++);
    own_ = table(steps(), [&](const Row& row, std::vector<int32_t>& index) {
      index.insert(index.end(), row.words.begin(), row.words.end());
    });
  }

  void build_source_table() {
    const auto source = [&](const Row& row) { return sources_[static_cast<size_t>(row.source)]; };
    int32_t longest = 1;
    for (const Row& row : rows_) longest = std::max(longest, source(row).words);
    source_ = table(longest, [&](const Row& row, std::vector<int32_t>& index) {
      for (int32_t u = 0; u < source(row).words; ++u) index.push_back(source(row).first + u);
    });
  }

  // The table of the words to which each row attends. add(row, index) appends the indices for one
  // row.
  template <class Add>
  CachedRows table(int64_t width, const Add& add) const {
    std::vector<int32_t> index, lengths;
    index.reserve(rows_.size() * static_cast<size_t>(width));
    for (const Row& row : rows_) {
      const size_t begin = index.size();
      add(row, index);
      lengths.push_back(static_cast<int32_t>(index.size() - begin));
      index.resize(begin + static_cast<size_t>(width), 0);
    }
    return {{}, Tensor::of(index).view({rows(), width}), Tensor::of(lengths)};
  }

  DecoderShape shape_;
  std::vector<Tensor> source_kv_;  // per layer [capacity, 2D], filled up to source_end()
  std::vector<Source> sources_;    // in the order of source_kv_
  std::vector<Tensor> kv_;         // per layer [capacity, 2D or state]; `used_` rows are filled
  int64_t used_ = 0;
  std::vector<Row> rows_;
  CachedRows own_, source_;  // if sources of rows have changed, source_.index is absent
};

}  // namespace

void DecoderMemory::join(std::vector<Tensor>, std::span<const int32_t>) {
  fail(ExitCode::unexpected, "this device cannot add sentences to a batch that it decodes");
}

void DecoderMemory::start_device_search(const BeamRules&) {
  fail(ExitCode::unexpected, "this device has no beam search; use step()");
}

const BeamStepResult& DecoderMemory::device_step(int64_t, const Next&, const Compute&) {
  fail(ExitCode::unexpected, "this device has no beam search; use step()");
}

namespace kernel {
std::unique_ptr<DecoderMemory> decoder_memory(Cpu, const DecoderShape& shape) {
  return std::make_unique<HostKvCache>(shape);
}
}  // namespace kernel

std::unique_ptr<DecoderMemory> decoder_memory(const DecoderShape& shape, Device device) {
  return std::visit([&](auto on) { return kernel::decoder_memory(on, shape); }, device);
}

}  // namespace fovea

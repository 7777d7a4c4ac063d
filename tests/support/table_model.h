#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/model.h"

namespace fovea {

// A model for tests whose scores come from a function. `scores(source, prefix)` returns the logits
// after the words `prefix` (with <s>) for a source sentence (with </s>).
class TableModel : public Model {
 public:
  using Row = std::vector<double>;
  using Words = std::vector<int32_t>;
  using Scores = std::function<Row(const Words& source, const Words& prefix)>;

  TableModel(int64_t words, int64_t max_length, Scores scores, ElementType type = ElementType::f64)
      : Model(type, Cpu{}), words_(words), max_length_(max_length), scores_(std::move(scores)) {}

  int64_t target_words() const override { return words_; }
  int64_t max_length() const override { return max_length_; }

  std::unique_ptr<DecoderState> start(const TokenBatch& source) const override {
    auto state = std::make_unique<State>();
    for (int64_t i = 0; i < source.sentences(); ++i)
      state->rows.push_back({sentence(source, i), {}});
    return state;
  }

  bool can_extend() const override { return joins_; }
  void join(DecoderState& state, const TokenBatch& source) const override {
    auto& rows = static_cast<State&>(state).rows;
    for (int64_t i = 0; i < source.sentences(); ++i) rows.push_back({sentence(source, i), {}});
  }
  void forbid_joining() { joins_ = false; }

  Tensor step(DecoderState& state, std::span<const int32_t> words) const override {
    auto& rows = static_cast<State&>(state).rows;
    assert(rows.size() == words.size());
    Row all;
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].prefix.push_back(words[i]);
      const Row row = scores_(rows[i].source, rows[i].prefix);
      all.insert(all.end(), row.begin(), row.end());
    }
    steps += static_cast<int64_t>(rows.size());
    return Tensor::of({static_cast<int64_t>(rows.size()), words_}, all, store_.type());
  }

  void reorder(DecoderState& state, std::span<const int32_t> parents) const override {
    auto& rows = static_cast<State&>(state).rows;
    std::vector<Live> next;
    for (const int32_t parent : parents) next.push_back(rows.at(static_cast<size_t>(parent)));
    rows = std::move(next);
  }

  BatchLoss loss(const TokenBatch& source, const TokenBatch& target_in,
                 std::span<const int32_t> target_out, double) const override {
    Row log_probs;
    for (int64_t i = 0; i < source.sentences(); ++i) {
      Words prefix;
      for (const int32_t word : sentence(target_in, i)) {
        prefix.push_back(word);
        const Row row = scores_(sentence(source, i), prefix);
        const double sum = std::accumulate(row.begin(), row.end(), 0.0,
                                           [](double s, double x) { return s + std::exp(x); });
        log_probs.push_back(row[static_cast<size_t>(target_out[log_probs.size()])] - std::log(sum));
      }
    }
    const double sum = -std::accumulate(log_probs.begin(), log_probs.end(), 0.0);
    return {Tensor::of({1}, std::vector{sum}, store_.type()),
            Tensor::of({std::ssize(log_probs)}, log_probs, store_.type())};
  }

  // Target word i attends to source word i, or to the last one if there is none.
  std::vector<std::vector<AttentionMap>> attention(const TokenBatch& source,
                                                   const TokenBatch& target_in) const override {
    std::vector<std::vector<AttentionMap>> maps;
    for (int64_t i = 0; i < source.sentences(); ++i) {
      AttentionMap map{
          "cross", 0, 0, std::ssize(sentence(target_in, i)), std::ssize(sentence(source, i)), {}};
      map.weights.assign(static_cast<size_t>(map.rows * map.cols), 0.0f);
      for (int64_t t = 0; t < map.rows; ++t)
        map.weights[t * map.cols + std::min(t, map.cols - 1)] = 1;
      maps.push_back({map});
    }
    return maps;
  }

  mutable std::atomic<int64_t> steps = 0;  // number of computed rows

 private:
  struct Live {
    Words source, prefix;
  };
  struct State : DecoderState {
    std::vector<Live> rows;
  };
  static Words sentence(const TokenBatch& tokens, int64_t i) {
    return {tokens.ids.begin() + tokens.offsets[i], tokens.ids.begin() + tokens.offsets[i + 1]};
  }

  int64_t words_, max_length_;
  Scores scores_;
  bool joins_ = true;
};

}  // namespace fovea

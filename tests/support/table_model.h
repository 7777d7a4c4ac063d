#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/decodable.h"
#include "models/explainable.h"

namespace fovea {

// A model for tests whose scores come from a function. `scores(source, prefix)` returns the logits
// after the words `prefix` (with <s>) for a source sentence (with </s>). No sentences
// can join a running batch.
class ClosedTableModel : public Model, public Decodable, public Attentive {
 public:
  using Row = std::vector<double>;
  using Words = std::vector<int32_t>;
  using Scores = std::function<Row(const Words& source, const Words& prefix)>;

  ClosedTableModel(int64_t words, int64_t max_length, Scores scores,
                   ElementType type = ElementType::f64)
      : Model(type, Cpu{}, {.max_length = max_length, .target_words = words}),
        scores_(std::move(scores)) {}

  std::unique_ptr<DecoderState> start(const TokenBatch& source) const override {
    auto state = std::make_unique<State>();
    add_rows(*state, source);
    return state;
  }

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
    return Tensor::of({static_cast<int64_t>(rows.size()), target_words()}, all, store_.type());
  }

  void reorder(DecoderState& state, std::span<const int32_t> parents) const override {
    auto& rows = static_cast<State&>(state).rows;
    std::vector<Live> next;
    for (const int32_t parent : parents) next.push_back(rows.at(static_cast<size_t>(parent)));
    rows = std::move(next);
  }

  BatchLoss loss(const TrainingBatch& batch, double) const override {
    const auto& [source, target_in, target_out, guidance] = batch;
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

 protected:
  static void add_rows(DecoderState& state, const TokenBatch& source) {
    auto& rows = static_cast<State&>(state).rows;
    for (int64_t i = 0; i < source.sentences(); ++i) rows.push_back({sentence(source, i), {}});
  }

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

  Scores scores_;
};

// Sentences can join its running batches.
class TableModel : public ClosedTableModel, public Extendable {
 public:
  using ClosedTableModel::ClosedTableModel;
  void extend(DecoderState& state, const TokenBatch& source) const override {
    add_rows(state, source);
  }
};

}  // namespace fovea

#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "decode/search.h"
#include "models/decodable.h"
#include "ops/topk.h"

namespace fovea {

// The result of a sentence whose search has ended.
struct SearchResult {
  int64_t index;                   // number of sentences that were added before this one
  int64_t number;                  // the number that add() got for it
  std::vector<Hypothesis> n_best;  // best first; empty if the caller no longer wanted it
};

// A search for several sentences at once, step by step (continuous batching). Finished sentences
// leave the batch. If all models are Extendable, new sentences join a running batch, and their
// results are the same as without other sentences. Not thread-safe.
class BatchSearch {
 public:
  // `models` and `options` must outlive the search.
  BatchSearch(std::span<const Model* const> models, const SearchOptions& options);

  bool empty() const { return searches_.empty(); }
  bool open() const;  // whether sentences may be added now
  // Adds sentences. `numbers` has one number for each, with the meaning as in search(). REQUIRES:
  // open().
  void add(const TokenBatch& source, std::span<const int64_t> numbers);
  // Extends each hypothesis by one word. Returns the sentences whose search ended with this step.
  std::vector<SearchResult> step();

 private:
  // A model that decodes the batch, and the model's state.
  struct BatchDecoder {
    const Decodable& model;
    const Extendable* extendable;  // null if no sentences can join the batch
    std::unique_ptr<DecoderState> state;
  };
  // What a step says about the next word of each row. A row is a live hypothesis.
  struct StepScores {
    Tensor scores;  // [rows, words]: logits, or an ensemble's probabilities; none on a GPU
    bool ensemble = false;
    int64_t k = 0;
    TopK best;                               // the best k words of each row, on the host
    mutable std::vector<double> end_scores;  // [rows]: score of </s>, fetched on first use

    // score() converts an entry of `scores` to a logit or a log-probability. value(), word(): the
    // score and the id of the j-th best word of a row.
    double score(double stored) const;
    double value(int64_t row, int64_t j) const;
    double log_sum(int64_t row) const;
    int32_t word(int64_t row, int64_t j) const;
  };
  // The search for the translations of one sentence or, if the search samples, for one sample of
  // it. The live hypotheses of a search are consecutive rows of the batch.
  struct SentenceSearch {
    int64_t index, number, sample;
    Beam beam;
  };
  // The rows of one search: `count` rows, beginning with row `first`. They are in a separate array,
  // because one thread reads all of them after a step. To read them from the searches, which other
  // threads have just written, would be slow.
  struct RowRange {
    int32_t first, count;
    bool at_limit;
  };
  // A sentence whose search has not ended. It has one search or, if the search samples, one per
  // sample.
  struct OpenSentence {
    std::vector<int32_t> source;  // empty if there is no coverage penalty
    int64_t running;              // number of running searches
    std::vector<Hypothesis> n_best = {};
  };

  // samples(): number of searches per sentence. width(): maximum number of live hypotheses per
  // search. kept(): number of hypotheses that an ended search returns.
  int64_t samples() const { return options_.sampling ? options_.n_best : 1; }
  int64_t width() const { return options_.sampling ? 1 : options_.beam; }
  int64_t kept() const { return options_.coverage_penalty != 0 ? options_.beam : options_.n_best; }
  // Number of words of each row that a step ranks: `width`, plus the number of banned words,
  // because these may be among the best.
  int64_t candidates() const;
  BeamOptions beam_options(int64_t source_pieces) const;
  void add_states(const TokenBatch& source);
  const DeviceDecodable* start_device_search();
  void drop_unwanted(std::vector<SearchResult>& results);
  // move_search() moves search `from` to position `to` of searches_ and sets its rows. truncate()
  // removes the searches from position `count` on.
  void move_search(size_t from, size_t to, const RowRange& rows);
  void truncate(size_t count);
  // Replaces row i of the states of all models by the previous row parents[i].
  void reorder(std::span<const int32_t> parents);
  StepScores device_scores();
  StepScores next_scores();
  void advance(const StepScores& scores);
  void advance(const StepScores& scores, int64_t s,
               std::vector<std::vector<Candidate>>& candidates);
  void check_row(const StepScores& scores, int64_t s, int64_t row) const;
  // Copies the last words and the parents of the live hypotheses of search s to next_words_ and
  // next_parents_.
  void update_rows(int64_t s);
  Candidate prefix_word(const StepScores& scores, int64_t row, int64_t step) const;
  void rank_words(const StepScores& scores, int64_t row, std::vector<Candidate>& candidates) const;
  void fetch_end_scores(const StepScores& scores) const;
  Candidate end_candidate(const StepScores& scores, int64_t row) const;
  Candidate draw(const StepScores& scores, int64_t row, const SentenceSearch& search);
  void keep_live(std::vector<SearchResult>& results);
  // Moves the hypotheses of an ended search to its sentence. If it is the last search of the
  // sentence, sorts the hypotheses, applies the coverage penalty and appends the result to
  // `results`.
  void end(const SentenceSearch& search, std::vector<Hypothesis> hypotheses,
           std::vector<SearchResult>& results);
  void check_device_choices(const std::vector<int32_t>& parents) const;

  std::span<const Model* const> models_;
  const SearchOptions& options_;
  std::vector<int32_t> banned_, words_;
  std::vector<BatchDecoder> decoders_;  // one per model; empty if the batch is empty
  std::vector<SentenceSearch> searches_;
  std::vector<RowRange> row_ranges_;
  std::vector<int32_t> next_words_, next_parents_;  // [searches, width]
  std::map<int64_t, OpenSentence> open_sentences_;  // by SearchResult::index
  mutable std::mutex mutex_;
  std::optional<Sampler> sampler_;
  int64_t rows_ = 0, added_ = 0;
  bool started_ = false;
  const DeviceDecodable* device_ = nullptr;        // null: the search runs on the host
  const BeamStepResult* device_result_ = nullptr;  // result of the last step on the device
};

}  // namespace fovea

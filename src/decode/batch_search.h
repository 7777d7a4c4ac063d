#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "decode/batch_decoder.h"
#include "decode/device_search.h"
#include "decode/search.h"
#include "decode/word_selection.h"

namespace fovea {

// The result of a sentence whose search has ended.
struct SearchResult {
  int64_t index;                   // number of sentences that were added before this one
  int64_t number;                  // the number that add() got for it
  std::vector<Hypothesis> n_best;  // best first; empty if the caller no longer wanted it
};

// A search for several sentences at once, step by step (continuous batching). Finished sentences
// leave the batch. If all models are Extendable, new sentences join a running batch; their
// results are the same as without other sentences. A device that can run the search does so
// (DeviceSearch). Not thread-safe.
class BatchSearch {
 public:
  // `models` and `options` must outlive the search.
  BatchSearch(std::span<const Model* const> models, const SearchOptions& options);

  bool empty() const { return searches_.empty(); }
  bool open() const;  // whether sentences may be added now
  // Adds sentences. The arguments are as in search(). REQUIRES: open().
  void add(const TokenBatch& source, std::span<const int64_t> numbers,
           std::span<const SentenceConstraints> constraints = {});
  // Extends each hypothesis by one word; returns the sentences whose search ended with this step.
  std::vector<SearchResult> step();

 private:
  // The search for the translations of one sentence, or for one sample of it. Its live hypotheses
  // are consecutive rows of the batch.
  struct SentenceSearch {
    int64_t index, number, sample;
    Beam beam;
    std::shared_ptr<const RequiredTerms> terms;  // null: none
    std::vector<int32_t> prefix;
    int64_t context = 0;  // pieces of the frame's target_prefix that the decoder has read
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
    std::vector<int32_t> source;  // without its frame, with </s>; empty without coverage penalty
    int64_t running;              // number of running searches
    std::vector<Hypothesis> n_best = {};
  };
  // Working memory of a thread: the candidates of each live hypothesis of a search.
  using CandidateLists = std::vector<std::vector<Candidate>>;

  const SentenceFrame& frame() const { return models_.front()->frame(); }
  // Number of searches per sentence; maximum number of live hypotheses per search without terms;
  // number of hypotheses that an ended search returns.
  int64_t samples() const { return options_.sampling ? options_.n_best : 1; }
  int64_t width() const { return options_.sampling ? 1 : options_.beam; }
  int64_t kept() const { return options_.coverage_penalty != 0 ? options_.beam : options_.n_best; }
  BeamOptions beam_options(int64_t source_pieces, const SentenceConstraints& own) const;
  void add_rows(const TokenBatch& source);
  void add_searches(int64_t source_pieces, int64_t number, const SentenceConstraints& own);
  void start_device_search();
  void drop_unwanted(std::vector<SearchResult>& results);
  // move_search() moves search `from` to position `to` of searches_ and sets its rows. truncate()
  // removes the searches from position `count` on.
  void move_search(size_t from, size_t to, const RowRange& rows);
  void truncate(size_t count);
  void collect_removed();
  // Number of words per row that a step ranks. The best may be banned.
  int64_t candidates() const;
  void step_on_device();
  void step_on_host();
  void advance(const StepScores& scores);
  void advance(const StepScores& scores, int64_t s, CandidateLists& candidates);
  void check_row(const StepScores& scores, int64_t s, int64_t row) const;
  // Copies the last words and the parents of the live hypotheses of search s to next_words_ and
  // next_parents_.
  void update_rows(int64_t s);
  std::span<const int32_t> removed(int64_t row) const;
  void keep_live(std::vector<SearchResult>& results);
  // Moves the hypotheses of an ended search to its sentence. If it is the last search of the
  // sentence, sorts the hypotheses, applies the coverage penalty and appends the result to
  // `results`.
  void end(const SentenceSearch& search, std::vector<Hypothesis> hypotheses,
           std::vector<SearchResult>& results);

  std::span<const Model* const> models_;
  const SearchOptions& options_;
  WordSelection selection_;
  BatchDecoder decoder_;
  std::optional<DeviceSearch> device_;  // if the device searches
  std::vector<SentenceSearch> searches_;
  std::vector<RowRange> row_ranges_;
  std::vector<int32_t> words_;                      // the next input of each row
  std::vector<std::vector<int32_t>> removed_;       // per row, or empty: WordSelection::removed
  std::vector<int32_t> next_words_, next_parents_;  // [searches, stride_]
  std::map<int64_t, OpenSentence> open_sentences_;  // by index
  std::mutex mutex_;
  int64_t stride_ = 0;  // at least the width of each beam
  int64_t added_ = 0;
  bool started_ = false;
  bool constrained_ = false;  // whether a sentence of the batch has a prefix or terms
};

}  // namespace fovea

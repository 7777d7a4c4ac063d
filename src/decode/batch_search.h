#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "decode/search.h"
#include "ops/topk.h"

namespace fovea {

// A sentence whose search has ended.
struct Found {
  int64_t index, number;           // how many were added before it; what it was added with
  std::vector<Hypothesis> n_best;  // best first; none where it was not wanted any more
};

// The search for several sentences at once, step by step. Sentences that end leave; where the
// models let them (Model::joins), others join while those before them are under way, and have the
// results that they would have had alone.
class BatchSearch {
 public:
  // Both must outlive it.
  BatchSearch(std::span<const Model* const> models, const SearchOptions& options);

  bool empty() const { return tracks_.empty(); }
  bool open() const;  // whether sentences may be added now
  // `numbers` are as in search(). REQUIRES: open().
  void add(const Tokens& source, std::span<const int64_t> numbers);
  // One more word for each hypothesis; returns the sentences that ended with it.
  std::vector<Found> step();

 private:
  // The scores of one step: what each row may go on with.
  struct Scores {
    Tensor scores;  // [rows, words]: logits, or an ensemble's probabilities; absent where told
    bool ensemble = false;
    int64_t k = 0;
    TopK best;                            // on the host
    mutable std::vector<double> endings;  // [rows]: of </s>, fetched when first asked for

    double score(double stored) const;
    double value(int64_t row, int64_t j) const;
    double log_sum(int64_t row) const;
    int32_t word(int64_t row, int64_t j) const;
  };
  // One sentence's search, or one of its samples: a run of rows of the batch.
  struct Track {
    int64_t index, number, sample;
    Beam beam;
  };
  // What one thread must know of all tracks after a step: many threads have written the tracks
  // themselves, and their memory would come slowly, piece by piece.
  struct Rows {
    int32_t first, count;
    bool at_limit;
  };
  // What becomes of a sentence until all its samples are drawn.
  struct Pending {
    std::vector<int32_t> source;  // where coverage counts
    int64_t left;                 // tracks
    std::vector<Hypothesis> n_best = {};
  };

  int64_t samples() const { return options_.sampling ? options_.n_best : 1; }
  int64_t width() const { return options_.sampling ? 1 : options_.beam; }
  int64_t kept() const { return options_.coverage_penalty != 0 ? options_.beam : options_.n_best; }
  int64_t candidates() const;
  BeamOptions beam_options(int64_t source_pieces) const;
  void add_states(const Tokens& source);
  bool steer();
  void drop_unwanted(std::vector<Found>& found);
  void go_on_with(size_t track, size_t as, const Rows& rows);
  void keep_first(size_t count);
  void reorder(std::span<const int32_t> parents);
  Scores told_scores();
  Scores next_scores();
  void advance(const Scores& scores);
  void advance(const Scores& scores, int64_t t, std::vector<std::vector<Candidate>>& candidates);
  void check_row(const Scores& scores, int64_t t, int64_t row) const;
  void note_rows(int64_t t);
  Candidate given(const Scores& scores, int64_t row, int64_t step) const;
  void rank(const Scores& scores, int64_t row, std::vector<Candidate>& candidates) const;
  void fetch_endings(const Scores& scores) const;
  Candidate ending(const Scores& scores, int64_t row) const;
  Candidate draw(const Scores& scores, int64_t row, const Track& track);
  void keep_live(std::vector<Found>& found);
  void end(const Track& track, std::vector<Hypothesis> hypotheses, std::vector<Found>& found);
  void check_told(const std::vector<int32_t>& parents) const;

  std::span<const Model* const> models_;
  const SearchOptions& options_;
  std::vector<int32_t> banned_, words_;
  std::vector<std::unique_ptr<DecoderState>> states_;
  std::vector<Track> tracks_;
  std::vector<Rows> of_track_;
  std::vector<int32_t> words_of_track_, parents_of_track_;  // [tracks, width]
  std::map<int64_t, Pending> pending_;                      // by index
  mutable std::mutex fetching_;
  std::optional<Sampler> sampler_;
  int64_t rows_ = 0, added_ = 0;
  bool begun_ = false, steered_ = false;
  const Steered* told_ = nullptr;  // of the last step
};

}  // namespace fovea

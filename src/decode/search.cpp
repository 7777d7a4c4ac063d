#include "decode/search.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>
#include <numeric>

#include "ops/matmul.h"
#include "ops/shape.h"
#include "ops/topk.h"
#include "text/batch.h"

namespace fovea {
namespace {

constexpr int64_t kExtraLength = 10;
constexpr int64_t kManyTracks = 64;  // that more than one thread is worth waking for

std::vector<int32_t> banned_words(const SearchOptions& options) {
  std::vector<int32_t> banned{kPad, kBos};
  if (!options.allow_unknown) banned.push_back(kUnk);
  return banned;
}

int64_t length_limit(const Model& model, int64_t source_pieces, const SearchOptions& options) {
  const double by_factor = options.max_length_factor * static_cast<double>(source_pieces);
  int64_t limit = static_cast<int64_t>(std::min(by_factor, 1e9)) + kExtraLength;
  if (options.max_length > 0) limit = std::min(limit, options.max_length);
  limit = std::max(limit, std::ssize(options.prefix) + 1);
  return std::clamp<int64_t>(limit, 1, model.max_length());
}

// The scores of one step: what each row may go on with.
struct StepScores {
  Tensor scores;  // [rows, words]: logits, or an ensemble's probabilities; absent where told
  bool ensemble = false;
  int64_t k = 0;
  TopK best;                            // on the host
  mutable std::vector<double> endings;  // [rows]: of </s>, fetched when first asked for

  double score(double stored) const { return ensemble ? std::log(stored) : stored; }
  double value(int64_t row, int64_t j) const { return score(number(best.values, row * k + j)); }
  double log_sum(int64_t row) const { return ensemble ? 0 : number(best.log_sum, row); }
  int32_t word(int64_t row, int64_t j) const { return best.columns.data<int32_t>()[row * k + j]; }

 private:
  static double number(const Tensor& x, int64_t i) {
    return x.type() == Type::f32 ? static_cast<double>(x.data<float>()[i]) : x.data<double>()[i];
  }
};

// One sentence's search, or one of its samples: a run of rows of the batch.
struct Track {
  int64_t sentence;
  int64_t sample;
  Beam beam;
};

// What one thread must know of all tracks after a step: many threads have written the tracks
// themselves, and their memory would come slowly, piece by piece.
struct Rows {
  int32_t first, count;
  bool at_limit;
};

// All sentences of a batch, step by step; finished ones leave it.
class BatchSearch {
 public:
  BatchSearch(std::span<const Model* const> models, const Tokens& source,
              std::span<const int64_t> numbers, const SearchOptions& options)
      : models_(models), numbers_(numbers), options_(options), banned_(banned_words(options)) {
    for (const Model* model : models_) states_.push_back(model->start(source));
    for (int64_t i = 0; i < source.sentences(); ++i)
      for (int64_t sample = 0; sample < samples(); ++sample)
        tracks_.push_back({i, sample, Beam(beam_options(source, i))});
    results_.resize(static_cast<size_t>(source.sentences()));
    rows_ = source.sentences();
    of_track_.resize(tracks_.size());
    words_of_track_.resize(tracks_.size() * static_cast<size_t>(width()));
    parents_of_track_.resize(words_of_track_.size());
    for (size_t t = 0; t < tracks_.size(); ++t) {
      of_track_[t] = {static_cast<int32_t>(t), 0, false};
      note_rows(static_cast<int64_t>(t));
    }
    words_.assign(tracks_.size(), kBos);
  }

  std::vector<std::vector<Hypothesis>> run() {
    if (samples() > 1) repeat_rows();
    steered_ = steer();
    for (step_ = 0; !tracks_.empty(); ++step_) {
      if (options_.wanted && !(steered_ ? any_wanted() : drop_unwanted())) break;
      advance(steered_ ? told_scores() : next_scores());
      keep_live();
    }
    for (auto& list : results_) std::ranges::sort(list, ranks_before);
    return std::move(results_);
  }

 private:
  int64_t samples() const { return options_.sampling ? options_.n_best : 1; }
  int64_t width() const { return options_.sampling ? 1 : options_.beam; }

  BeamOptions beam_options(const Tokens& source, int64_t i) const {
    int64_t limit = std::numeric_limits<int64_t>::max();
    const int64_t pieces = source.offsets[i + 1] - source.offsets[i] - 1;
    for (const Model* model : models_)
      limit = std::min(limit, length_limit(*model, pieces, options_));
    const bool all = options_.coverage_penalty != 0;  // coverage may lift any of them
    return {.size = width(),
            .n_best = options_.sampling ? 1
                      : all             ? options_.beam
                                        : options_.n_best,
            .length_penalty = options_.length_penalty,
            .max_length = limit,
            .early_stop = options_.early_stop};
  }

  // Whether the device does: see Note [Ahead].
  bool steer() {
    if (tracks_.empty() || models_.size() != 1 || options_.sampling || !options_.prefix.empty() ||
        width() > kMostSteered)
      return false;
    Steering rules{.width = width(),
                   .n_best = tracks_.front().beam.options().n_best,
                   .candidates = candidates(),
                   .end = kEos,
                   .banned = banned_,
                   .length_penalty = options_.length_penalty,
                   .early_stop = options_.early_stop,
                   .max_lengths = {}};
    for (const Track& track : tracks_)
      rules.max_lengths.push_back(static_cast<int32_t>(track.beam.options().max_length));
    if (!models_[0]->steer(*states_[0], rules)) return false;
    models_[0]->step_ahead(*states_[0], rows_);
    return true;
  }

  void repeat_rows() {
    std::vector<int32_t> parents;
    for (const Track& track : tracks_) parents.push_back(static_cast<int32_t>(track.sentence));
    reorder(parents);
  }

  // Rows that the device chooses stay until their search ends.
  bool any_wanted() const {
    return std::ranges::any_of(
        tracks_, [&](const Track& t) { return options_.wanted(numbers_[t.sentence]); });
  }

  // Whether any track is left.
  bool drop_unwanted() {
    std::vector<int32_t> from, words;
    size_t going_on = 0;
    for (size_t t = 0; t < tracks_.size(); ++t) {
      if (!options_.wanted(numbers_[tracks_[t].sentence])) continue;
      const auto first = static_cast<int32_t>(from.size());
      Rows rows = of_track_[t];
      for (int32_t row = rows.first; row < rows.first + rows.count; ++row) {
        from.push_back(row);
        words.push_back(words_[row]);
      }
      rows.first = first;
      go_on_with(t, going_on++, rows);
    }
    keep_first(going_on);
    words_ = std::move(words);
    if (!tracks_.empty()) reorder(from);
    return !tracks_.empty();
  }

  void go_on_with(size_t track, size_t as, const Rows& rows) {
    if (as < track) tracks_[as] = std::move(tracks_[track]);
    of_track_[as] = rows;
  }
  void keep_first(size_t count) {
    tracks_.erase(tracks_.begin() + static_cast<std::ptrdiff_t>(count), tracks_.end());
    of_track_.resize(count);
  }

  void reorder(std::span<const int32_t> parents) {
    bool same = static_cast<int64_t>(parents.size()) == rows_;
    for (size_t i = 0; same && i < parents.size(); ++i)
      same = parents[i] == static_cast<int32_t>(i);
    if (same) return;
    for (size_t m = 0; m < models_.size(); ++m) models_[m]->reorder(*states_[m], parents);
    rows_ = static_cast<int64_t>(parents.size());
  }

  int64_t candidates() const {
    return std::min(width() + std::ssize(banned_), models_[0]->target_words());
  }

  // Of the step before the one that begins now.
  StepScores told_scores() {
    int64_t room = 0;  // of the next: who is at the limit ends now
    for (const Rows& rows : of_track_) room += rows.at_limit ? 0 : width();
    told_ = &models_[0]->step_ahead(*states_[0], room);
    return {.scores = {},
            .ensemble = false,
            .k = candidates(),
            .best = told_->best,
            .endings = told_->endings.values()};
  }

  StepScores next_scores() {
    std::vector<Tensor> scores;
    for (size_t m = 0; m < models_.size(); ++m)
      scores.push_back(models_[m]->step(*states_[m], words_));
    StepScores result;
    result.ensemble = scores.size() > 1;
    result.k = candidates();
    result.scores = result.ensemble ? mean_probabilities(scores) : scores[0];
    result.best = on_host(top_k(result.scores, result.k));
    return result;
  }

  // Tracks know nothing of each other, so that threads can share the many that a GPU has at once.
  void advance(const StepScores& scores) {
    bool at_limit = false;
    for (int64_t t = 0; t < std::ssize(tracks_); ++t) {
      at_limit = at_limit || of_track_[t].at_limit;
      for (int32_t i = 0; i < of_track_[t].count; ++i) check_row(scores, t, of_track_[t].first + i);
    }
    if (at_limit) fetch_endings(scores);
    std::exception_ptr failure;
    const int64_t tracks = std::ssize(tracks_);
    const bool forced = step_ < std::ssize(options_.prefix);
#pragma omp parallel if (tracks >= kManyTracks && !options_.sampling && !forced)
    {
      std::vector<std::vector<Candidate>> candidates;
#pragma omp for schedule(static)
      for (int64_t t = 0; t < tracks; ++t) {
        try {
          advance(scores, t, candidates);
        } catch (...) {  // none may leave the threads
          const std::lock_guard hold(fetching_);
          failure = std::current_exception();
        }
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

  void check_row(const StepScores& scores, int64_t t, int64_t row) const {
    if (std::isfinite(scores.log_sum(row)) && scores.word(row, 0) >= 0) return;
    fail(Exit::model, "the model's scores are not finite at word ", step_ + 1, " of sentence ",
         numbers_[tracks_[t].sentence] + 1, "; the weights are damaged or training diverged");
  }

  // With room for the candidates of a track's rows.
  void advance(const StepScores& scores, int64_t t,
               std::vector<std::vector<Candidate>>& candidates) {
    Track& track = tracks_[t];
    const int64_t live = track.beam.live();
    if (std::ssize(candidates) < live) candidates.resize(static_cast<size_t>(live));
    for (int64_t i = 0; i < live; ++i) {
      const int64_t row = of_track_[t].first + i;
      candidates[i].clear();
      if (step_ < std::ssize(options_.prefix))
        candidates[i].push_back(given(scores, row));
      else if (track.beam.at_limit())
        candidates[i].push_back(ending(scores, row));
      else if (options_.sampling)
        candidates[i].push_back(draw(scores, row, track));
      else
        rank(scores, row, candidates[i]);
    }
    track.beam.advance(std::span(candidates).first(static_cast<size_t>(live)));
    note_rows(t);
  }

  void note_rows(int64_t t) {
    const Beam& beam = tracks_[t].beam;
    Rows& rows = of_track_[t];
    rows.count = static_cast<int32_t>(beam.live());
    rows.at_limit = beam.at_limit();
    const std::span<const int32_t> parents = beam.parents();
    for (int64_t i = 0; i < std::ssize(parents); ++i) {
      words_of_track_[t * width() + i] = beam.last_word(i);
      parents_of_track_[t * width() + i] = rows.first + parents[i];
    }
  }

  // The word of the prefix. What the model holds to be impossible has the least probability that
  // can still be added up.
  Candidate given(const StepScores& scores, int64_t row) {
    const int32_t word = options_.prefix[static_cast<size_t>(step_)];
    const double stored = columns(scores.scores.window(row, 1), word, 1).values()[0];
    const double log_prob = scores.score(stored) - scores.log_sum(row);
    return {word, std::clamp(log_prob, kImpossible, 0.0)};
  }

  void rank(const StepScores& scores, int64_t row, std::vector<Candidate>& candidates) const {
    for (int64_t j = 0; j < scores.k; ++j) {
      const int32_t word = scores.word(row, j);
      const double log_prob = std::min(0.0, scores.value(row, j) - scores.log_sum(row));
      const bool possible = word >= 0 && log_prob > kImpossible;
      if (possible && std::ranges::find(banned_, word) == banned_.end())
        candidates.push_back({word, log_prob});
    }
    if (candidates.empty()) candidates.push_back(ending(scores, row));
  }

  void fetch_endings(const StepScores& scores) const {
    const std::lock_guard hold(fetching_);
    if (scores.endings.empty()) scores.endings = columns(scores.scores, kEos, 1).values();
  }

  Candidate ending(const StepScores& scores, int64_t row) const {
    fetch_endings(scores);
    return {kEos, std::min(0.0, scores.score(scores.endings[row]) - scores.log_sum(row))};
  }

  Candidate draw(const StepScores& scores, int64_t row, const Track& track) {
    if (!sampler_) sampler_.emplace(*options_.sampling);
    const Draw which{numbers_[track.sentence], track.sample, step_};
    const Tensor one = scores.scores.window(row, 1);
    std::vector<double> words = one.values();
    for (double& w : words) w = scores.score(w);
    return sampler_->draw(words, scores.log_sum(row), banned_, which);
  }

  // Takes the results of finished tracks and gives the states the rows of the others.
  void keep_live() {
    std::vector<int32_t> parents;
    words_.clear();
    size_t going_on = 0;
    for (size_t t = 0; t < tracks_.size(); ++t) {
      Rows rows = of_track_[t];
      if (options_.each_step) options_.each_step(numbers_[tracks_[t].sentence], tracks_[t].beam);
      if (rows.count == 0) {
        if (options_.watch) options_.watch(numbers_[tracks_[t].sentence], tracks_[t].beam);
        for (Hypothesis& h : tracks_[t].beam.best(kept()))
          results_[tracks_[t].sentence].push_back(std::move(h));
        continue;
      }
      const auto at = static_cast<std::ptrdiff_t>(t) * width();
      rows.first = static_cast<int32_t>(words_.size());
      words_.insert(words_.end(), words_of_track_.begin() + at,
                    words_of_track_.begin() + at + rows.count);
      parents.insert(parents.end(), parents_of_track_.begin() + at,
                     parents_of_track_.begin() + at + rows.count);
      go_on_with(t, going_on++, rows);
    }
    keep_first(going_on);
    if (steered_) return check_told(parents);
    if (!tracks_.empty()) reorder(parents);
  }

  void check_told(const std::vector<int32_t>& parents) const {
    check(std::ranges::equal(told_->words, words_) && std::ranges::equal(told_->parents, parents),
          Exit::unexpected, "at word ", step_ + 1,
          " the GPU goes on with other hypotheses than the host; please report this");
  }

  int64_t kept() const { return options_.coverage_penalty != 0 ? options_.beam : options_.n_best; }

  std::span<const Model* const> models_;
  std::span<const int64_t> numbers_;
  const SearchOptions& options_;
  std::vector<int32_t> banned_, words_;
  std::vector<std::unique_ptr<DecoderState>> states_;
  std::vector<Track> tracks_;
  std::vector<Rows> of_track_;
  std::vector<int32_t> words_of_track_, parents_of_track_;  // [tracks, width]
  std::vector<std::vector<Hypothesis>> results_;
  mutable std::mutex fetching_;
  std::optional<Sampler> sampler_;
  int64_t rows_ = 0, step_ = 0;
  bool steered_ = false;
  const Steered* told_ = nullptr;  // of the last step
};

using Results = std::vector<std::vector<Hypothesis>>;

// Note [Shares]
// Threads that work on a step together wait for each other after each of its many small
// operations. So where there are sentences for most of them, each thread translates some of its
// own. Sentences of a batch stand in the order of their lengths: with n shares every n-th belongs
// to one, so that all have the same work.
struct Share {
  Packed source = {};
  std::vector<int64_t> numbers = {};
  Results results = {};
  std::exception_ptr failed = {};
};

int number_of_shares(std::span<const Model* const> models, int64_t sentences) {
  const bool on_host = std::ranges::all_of(models, [](const Model* model) {
    return std::holds_alternative<Cpu>(model->parameters().device());
  });
  const int threads = on_host && !omp_in_parallel() ? omp_get_max_threads() : 1;
  if (2 * sentences < threads) return 1;
  return static_cast<int>(std::min<int64_t>(threads, sentences));
}

// Who listens hears one thread at a time.
SearchOptions told_in_turn(SearchOptions options, std::mutex& turn) {
  for (auto* listener : {&options.each_step, &options.watch})
    if (*listener)
      *listener = [&turn, tell = std::move(*listener)](int64_t number, const Beam& beam) {
        const std::lock_guard hold(turn);
        tell(number, beam);
      };
  return options;
}

Results search_in_shares(std::span<const Model* const> models, const Tokens& source,
                         std::span<const int64_t> numbers, const SearchOptions& all_options) {
  const int n = number_of_shares(models, source.sentences());
  if (n <= 1) return BatchSearch(models, source, numbers, all_options).run();
  std::mutex turn;
  const SearchOptions options = told_in_turn(all_options, turn);
  std::vector<Share> shares(static_cast<size_t>(n));
  for (int64_t i = 0; i < source.sentences(); ++i) {
    const int32_t first = source.offsets[i], end = source.offsets[i + 1];
    shares[i % n].source.add(source.ids.subspan(first, end - first), Packed::Mark::none);
    shares[i % n].numbers.push_back(numbers[i]);
  }
  const Precision precision = PrecisionScope::current();
#pragma omp parallel for num_threads(n) schedule(static, 1)
  for (Share& share : shares) {
    try {
      const PrecisionScope scope(precision);
      const Tokens own{share.source.ids, share.source.offsets};
      share.results = BatchSearch(models, own, share.numbers, options).run();
    } catch (...) {
      share.failed = std::current_exception();
    }
  }
  for (const Share& share : shares)
    if (share.failed) std::rethrow_exception(share.failed);
  Results results;
  for (int64_t i = 0; i < source.sentences(); ++i)
    results.push_back(std::move(shares[i % n].results[i / n]));
  return results;
}

}  // namespace

void SearchOptions::check() const {
  const auto in_range = [](const char* option, double value, double low, double high) {
    fovea::check(value >= low && value <= high, Exit::usage, "--", option, ": ", value,
                 " is not between ", low, " and ", high);
  };
  in_range("beam", static_cast<double>(beam), 1, 1024);
  in_range("n-best", static_cast<double>(n_best), 1, 1024);
  in_range("length-penalty", length_penalty, -10, 10);
  in_range("coverage-penalty", coverage_penalty, 0, 100);
  in_range("max-length-factor", max_length_factor, 0, 1000);
  in_range("max-length", static_cast<double>(max_length), 0, 1e6);
  fovea::check(sampling || n_best <= beam, Exit::usage, "--n-best ", n_best,
               " asks for more translations than --beam ", beam, " keeps; set --beam ", n_best);
  if (!sampling) return;
  in_range("temperature", sampling->temperature, 1e-3, 1e3);
  in_range("top-k", static_cast<double>(sampling->top_k), 0, 1e9);
  in_range("top-p", sampling->top_p, 1e-6, 1);
}

std::vector<std::vector<Hypothesis>> search(std::span<const Model* const> models,
                                            const Tokens& source, std::span<const int64_t> numbers,
                                            const SearchOptions& options) {
  for (const Model* model : models)
    check(std::ssize(options.prefix) < model->max_length(), Exit::usage, "the prefix has ",
          options.prefix.size(), " pieces, and the model takes ", model->max_length() - 1,
          "; shorten it");
  auto results = search_in_shares(models, source, numbers, options);
  if (options.coverage_penalty == 0) return results;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].empty()) continue;
    const int32_t first = source.offsets[i], end = source.offsets[i + 1];
    const auto sentence = source.ids.subspan(first, end - first);
    add_coverage(*models.front(), sentence, options.coverage_penalty, results[i]);
    if (std::ssize(results[i]) > options.n_best)
      results[i].resize(static_cast<size_t>(options.n_best));
  }
  return results;
}

}  // namespace fovea

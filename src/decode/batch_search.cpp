#include "decode/batch_search.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <limits>

#include "ops/shape.h"
#include "text/vocabulary.h"

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

double number_at(const Tensor& x, int64_t i) {
  return x.type() == Type::f32 ? static_cast<double>(x.data<float>()[i]) : x.data<double>()[i];
}

}  // namespace

double BatchSearch::Scores::score(double stored) const {
  return ensemble ? std::log(stored) : stored;
}
double BatchSearch::Scores::value(int64_t row, int64_t j) const {
  return score(number_at(best.values, row * k + j));
}
double BatchSearch::Scores::log_sum(int64_t row) const {
  return ensemble ? 0 : number_at(best.log_sum, row);
}
int32_t BatchSearch::Scores::word(int64_t row, int64_t j) const {
  return best.columns.data<int32_t>()[row * k + j];
}

BatchSearch::BatchSearch(std::span<const Model* const> models, const SearchOptions& options)
    : models_(models), options_(options), banned_(banned_words(options)) {
  for (const Model* model : models)
    check(std::ssize(options.prefix) < model->max_length(), Exit::usage, "the prefix has ",
          options.prefix.size(), " pieces, and the model takes ", model->max_length() - 1,
          "; shorten it");
}

bool BatchSearch::open() const {
  return empty() || (samples() == 1 && std::ranges::all_of(models_, &Model::joins));
}

// A row for each of these sentences, behind those there are; as many as it has samples.
void BatchSearch::add_states(const Tokens& source) {
  if (!empty()) {
    for (size_t m = 0; m < models_.size(); ++m) models_[m]->join(*states_[m], source);
    rows_ += source.sentences();
    return;
  }
  states_.clear();
  for (const Model* model : models_) states_.push_back(model->start(source));
  rows_ = source.sentences();
  begun_ = steered_ = false;
  words_.clear();
  std::vector<int32_t> parents;
  for (int32_t i = 0; i < source.sentences(); ++i)
    parents.insert(parents.end(), static_cast<size_t>(samples()), i);
  reorder(parents);
}

void BatchSearch::add(const Tokens& source, std::span<const int64_t> numbers) {
  add_states(source);
  const bool covers = options_.coverage_penalty != 0;
  for (int64_t i = 0; i < source.sentences(); ++i, ++added_) {
    const int32_t first = source.offsets[i], end = source.offsets[i + 1];
    const auto ids = source.ids.subspan(first, covers ? end - first : 0);
    pending_[added_] = {{ids.begin(), ids.end()}, samples()};
    for (int64_t sample = 0; sample < samples(); ++sample) {
      tracks_.push_back({added_, numbers[i], sample, Beam(beam_options(end - first - 1))});
      of_track_.push_back({static_cast<int32_t>(words_.size()), 0, false});
      words_.push_back(kBos);
      words_of_track_.resize(tracks_.size() * static_cast<size_t>(width()));
      parents_of_track_.resize(words_of_track_.size());
      note_rows(std::ssize(tracks_) - 1);
    }
  }
}

std::vector<Found> BatchSearch::step() {
  std::vector<Found> found;
  if (!begun_) steered_ = steer();
  begun_ = true;
  if (options_.wanted) drop_unwanted(found);
  if (!empty()) {
    advance(steered_ ? told_scores() : next_scores());
    keep_live(found);
  }
  if (empty()) states_.clear();
  return found;
}

BeamOptions BatchSearch::beam_options(int64_t source_pieces) const {
  int64_t limit = std::numeric_limits<int64_t>::max();
  for (const Model* model : models_)
    limit = std::min(limit, length_limit(*model, source_pieces, options_));
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
bool BatchSearch::steer() {
  if (models_.size() != 1 || options_.sampling || !options_.prefix.empty() ||
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

// Rows that the device chooses stay until their search ends, or nobody wants any of them.
void BatchSearch::drop_unwanted(std::vector<Found>& found) {
  const auto wanted = [&](const Track& track) { return options_.wanted(track.number); };
  if (steered_ && std::ranges::any_of(tracks_, wanted)) return;
  std::vector<int32_t> from, words;
  size_t going_on = 0;
  for (size_t t = 0; t < tracks_.size(); ++t) {
    if (steered_ || !wanted(tracks_[t])) {
      end(tracks_[t], {}, found);
      continue;
    }
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
  if (!empty()) reorder(from);
}

void BatchSearch::go_on_with(size_t track, size_t as, const Rows& rows) {
  if (as < track) tracks_[as] = std::move(tracks_[track]);
  of_track_[as] = rows;
}

void BatchSearch::keep_first(size_t count) {
  tracks_.erase(tracks_.begin() + static_cast<std::ptrdiff_t>(count), tracks_.end());
  of_track_.resize(count);
}

void BatchSearch::reorder(std::span<const int32_t> parents) {
  bool same = static_cast<int64_t>(parents.size()) == rows_;
  for (size_t i = 0; same && i < parents.size(); ++i) same = parents[i] == static_cast<int32_t>(i);
  if (same) return;
  for (size_t m = 0; m < models_.size(); ++m) models_[m]->reorder(*states_[m], parents);
  rows_ = static_cast<int64_t>(parents.size());
}

int64_t BatchSearch::candidates() const {
  return std::min(width() + std::ssize(banned_), models_[0]->target_words());
}

// Of the step before the one that begins now.
BatchSearch::Scores BatchSearch::told_scores() {
  int64_t room = 0;  // of the next: who is at the limit ends now
  for (const Rows& rows : of_track_) room += rows.at_limit ? 0 : width();
  told_ = &models_[0]->step_ahead(*states_[0], room);
  return {.scores = {},
          .ensemble = false,
          .k = candidates(),
          .best = told_->best,
          .endings = told_->endings.values()};
}

BatchSearch::Scores BatchSearch::next_scores() {
  std::vector<Tensor> scores;
  for (size_t m = 0; m < models_.size(); ++m)
    scores.push_back(models_[m]->step(*states_[m], words_));
  Scores result;
  result.ensemble = scores.size() > 1;
  result.k = candidates();
  result.scores = result.ensemble ? mean_probabilities(scores) : scores[0];
  result.best = on_host(top_k(result.scores, result.k));
  return result;
}

// Tracks know nothing of each other, so that threads can share the many that a GPU has at once.
void BatchSearch::advance(const Scores& scores) {
  bool at_limit = false;
  for (int64_t t = 0; t < std::ssize(tracks_); ++t) {
    at_limit = at_limit || of_track_[t].at_limit;
    for (int32_t i = 0; i < of_track_[t].count; ++i) check_row(scores, t, of_track_[t].first + i);
  }
  if (at_limit) fetch_endings(scores);
  std::exception_ptr failure;
  const int64_t tracks = std::ssize(tracks_);
  const bool forced = !options_.prefix.empty();
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

void BatchSearch::check_row(const Scores& scores, int64_t t, int64_t row) const {
  if (std::isfinite(scores.log_sum(row)) && scores.word(row, 0) >= 0) return;
  fail(Exit::model, "the model's scores are not finite at word ", tracks_[t].beam.length() + 1,
       " of sentence ", tracks_[t].number + 1, "; the weights are damaged or training diverged");
}

// With room for the candidates of a track's rows.
void BatchSearch::advance(const Scores& scores, int64_t t,
                          std::vector<std::vector<Candidate>>& candidates) {
  Track& track = tracks_[t];
  const int64_t live = track.beam.live(), step = track.beam.length();
  if (std::ssize(candidates) < live) candidates.resize(static_cast<size_t>(live));
  for (int64_t i = 0; i < live; ++i) {
    const int64_t row = of_track_[t].first + i;
    candidates[i].clear();
    if (step < std::ssize(options_.prefix))
      candidates[i].push_back(given(scores, row, step));
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

void BatchSearch::note_rows(int64_t t) {
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
Candidate BatchSearch::given(const Scores& scores, int64_t row, int64_t step) const {
  const int32_t word = options_.prefix[static_cast<size_t>(step)];
  const double stored = columns(scores.scores.window(row, 1), word, 1).values()[0];
  const double log_prob = scores.score(stored) - scores.log_sum(row);
  return {word, std::clamp(log_prob, kImpossible, 0.0)};
}

void BatchSearch::rank(const Scores& scores, int64_t row,
                       std::vector<Candidate>& candidates) const {
  for (int64_t j = 0; j < scores.k; ++j) {
    const int32_t word = scores.word(row, j);
    const double log_prob = std::min(0.0, scores.value(row, j) - scores.log_sum(row));
    const bool possible = word >= 0 && log_prob > kImpossible;
    if (possible && std::ranges::find(banned_, word) == banned_.end())
      candidates.push_back({word, log_prob});
  }
  if (candidates.empty()) candidates.push_back(ending(scores, row));
}

void BatchSearch::fetch_endings(const Scores& scores) const {
  const std::lock_guard hold(fetching_);
  if (scores.endings.empty()) scores.endings = columns(scores.scores, kEos, 1).values();
}

Candidate BatchSearch::ending(const Scores& scores, int64_t row) const {
  fetch_endings(scores);
  return {kEos, std::min(0.0, scores.score(scores.endings[row]) - scores.log_sum(row))};
}

Candidate BatchSearch::draw(const Scores& scores, int64_t row, const Track& track) {
  if (!sampler_) sampler_.emplace(*options_.sampling);
  const Draw which{track.number, track.sample, track.beam.length()};
  const Tensor one = scores.scores.window(row, 1);
  std::vector<double> words = one.values();
  for (double& w : words) w = scores.score(w);
  return sampler_->draw(words, scores.log_sum(row), banned_, which);
}

// Takes the results of finished tracks and gives the states the rows of the others.
void BatchSearch::keep_live(std::vector<Found>& found) {
  std::vector<int32_t> parents;
  words_.clear();
  size_t going_on = 0;
  for (size_t t = 0; t < tracks_.size(); ++t) {
    const Track& track = tracks_[t];
    Rows rows = of_track_[t];
    if (options_.each_step) options_.each_step(track.number, track.beam);
    if (rows.count == 0) {
      if (options_.watch) options_.watch(track.number, track.beam);
      end(track, track.beam.best(kept()), found);
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
  if (!empty()) reorder(parents);
}

void BatchSearch::end(const Track& track, std::vector<Hypothesis> hypotheses,
                      std::vector<Found>& found) {
  const auto at = pending_.find(track.index);
  Pending& sentence = at->second;
  std::ranges::move(hypotheses, std::back_inserter(sentence.n_best));
  if (--sentence.left > 0) return;
  std::ranges::sort(sentence.n_best, ranks_before);
  if (options_.coverage_penalty != 0 && !sentence.n_best.empty()) {
    add_coverage(*models_.front(), sentence.source, options_.coverage_penalty, sentence.n_best);
    const auto most = static_cast<size_t>(options_.n_best);
    if (sentence.n_best.size() > most) sentence.n_best.resize(most);
  }
  found.push_back({track.index, track.number, std::move(sentence.n_best)});
  pending_.erase(at);
}

void BatchSearch::check_told(const std::vector<int32_t>& parents) const {
  check(std::ranges::equal(told_->words, words_) && std::ranges::equal(told_->parents, parents),
        Exit::unexpected,
        "the GPU goes on with other hypotheses than the host; please report this");
}

}  // namespace fovea

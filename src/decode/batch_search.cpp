#include "decode/batch_search.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <limits>

#include "decode/model_capabilities.h"
#include "ops/shape.h"
#include "text/vocabulary.h"

namespace fovea {
namespace {

constexpr int64_t kExtraLength = 10;
constexpr int64_t kMinParallelSearches = 64;  // for fewer, waking threads takes longer

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
  return x.type() == ElementType::f32 ? static_cast<double>(x.data<float>()[i])
                                      : x.data<double>()[i];
}

}  // namespace

double BatchSearch::StepScores::score(double stored) const {
  return ensemble ? std::log(stored) : stored;
}
double BatchSearch::StepScores::value(int64_t row, int64_t j) const {
  return score(number_at(best.values, row * k + j));
}
double BatchSearch::StepScores::log_sum(int64_t row) const {
  return ensemble ? 0 : number_at(best.log_sum, row);
}
int32_t BatchSearch::StepScores::word(int64_t row, int64_t j) const {
  return best.columns.data<int32_t>()[row * k + j];
}

BatchSearch::BatchSearch(std::span<const Model* const> models, const SearchOptions& options)
    : models_(models), options_(options), banned_(banned_words(options)) {
  for (const Model* model : models)
    check(std::ssize(options.prefix) < model->max_length(), ExitCode::usage, "the prefix has ",
          options.prefix.size(), " pieces, and the model takes ", model->max_length() - 1,
          "; shorten it");
}

bool BatchSearch::open() const {
  return empty() || (samples() == 1 && std::ranges::all_of(decoders_, &BatchDecoder::extendable));
}

// Adds the first rows of new sentences to the batch: one row per sentence or, if the search
// samples, one row per sample of a sentence.
void BatchSearch::add_states(const TokenBatch& source) {
  if (!empty()) {
    for (const BatchDecoder& d : decoders_) d.extendable->extend(*d.state, source);
    rows_ += source.sentences();
    return;
  }
  decoders_.clear();
  for (const Model* model : models_) {
    const Decodable& decoder = decodable(*model);
    decoders_.push_back({decoder, model->as<Extendable>(), decoder.start(source)});
  }
  rows_ = source.sentences();
  started_ = false;
  device_ = nullptr;
  words_.clear();
  std::vector<int32_t> parents;
  for (int32_t i = 0; i < source.sentences(); ++i)
    parents.insert(parents.end(), static_cast<size_t>(samples()), i);
  reorder(parents);
}

void BatchSearch::add(const TokenBatch& source, std::span<const int64_t> numbers) {
  add_states(source);
  const bool covers = options_.coverage_penalty != 0;
  for (int64_t i = 0; i < source.sentences(); ++i, ++added_) {
    const int32_t first = source.offsets[i], end = source.offsets[i + 1];
    const auto ids = source.ids.subspan(first, covers ? end - first : 0);
    open_sentences_[added_] = {{ids.begin(), ids.end()}, samples()};
    for (int64_t sample = 0; sample < samples(); ++sample) {
      searches_.push_back({added_, numbers[i], sample, Beam(beam_options(end - first - 1))});
      row_ranges_.push_back({static_cast<int32_t>(words_.size()), 0, false});
      words_.push_back(kBos);
      next_words_.resize(searches_.size() * static_cast<size_t>(width()));
      next_parents_.resize(next_words_.size());
      update_rows(std::ssize(searches_) - 1);
    }
  }
}

std::vector<SearchResult> BatchSearch::step() {
  std::vector<SearchResult> results;
  if (!started_) device_ = start_device_search();
  started_ = true;
  if (options_.wanted) drop_unwanted(results);
  if (!empty()) {
    advance(device_ ? device_scores() : next_scores());
    keep_live(results);
  }
  if (empty()) decoders_.clear();
  return results;
}

BeamOptions BatchSearch::beam_options(int64_t source_pieces) const {
  int64_t limit = std::numeric_limits<int64_t>::max();
  for (const Model* model : models_)
    limit = std::min(limit, length_limit(*model, source_pieces, options_));
  const bool all = options_.coverage_penalty != 0;  // the penalty may change the order
  return {.size = width(),
          .n_best = options_.sampling ? 1
                    : all             ? options_.beam
                                      : options_.n_best,
          .length_penalty = options_.length_penalty,
          .max_length = limit,
          .early_stop = options_.early_stop};
}

// Starts the search on the device (Note [Ahead]). If the device cannot run it, returns null.
const DeviceDecodable* BatchSearch::start_device_search() {
  const auto* const device = models_.front()->as<DeviceDecodable>();
  if (!device || models_.size() != 1 || options_.sampling || !options_.prefix.empty() ||
      width() > kMostSteered)
    return nullptr;
  BeamRules rules{.width = width(),
                  .n_best = searches_.front().beam.options().n_best,
                  .candidates = candidates(),
                  .end = kEos,
                  .banned = banned_,
                  .length_penalty = options_.length_penalty,
                  .early_stop = options_.early_stop,
                  .max_lengths = {}};
  for (const SentenceSearch& search : searches_)
    rules.max_lengths.push_back(static_cast<int32_t>(search.beam.options().max_length));
  device->start_device_search(*decoders_.front().state, rules);
  device->device_step(*decoders_.front().state, rows_);
  return device;
}

// Ends the searches of sentences that the caller does not want any more. If the device runs the
// search, it cannot end single searches: all of them continue until no sentence of the batch is
// wanted.
void BatchSearch::drop_unwanted(std::vector<SearchResult>& results) {
  const auto wanted = [&](const SentenceSearch& search) { return options_.wanted(search.number); };
  if (device_ && std::ranges::any_of(searches_, wanted)) return;
  std::vector<int32_t> from, words;
  size_t remaining = 0;
  for (size_t s = 0; s < searches_.size(); ++s) {
    if (device_ || !wanted(searches_[s])) {
      end(searches_[s], {}, results);
      continue;
    }
    const auto first = static_cast<int32_t>(from.size());
    RowRange rows = row_ranges_[s];
    for (int32_t row = rows.first; row < rows.first + rows.count; ++row) {
      from.push_back(row);
      words.push_back(words_[row]);
    }
    rows.first = first;
    move_search(s, remaining++, rows);
  }
  truncate(remaining);
  words_ = std::move(words);
  if (!empty()) reorder(from);
}

void BatchSearch::move_search(size_t from, size_t to, const RowRange& rows) {
  if (to < from) searches_[to] = std::move(searches_[from]);
  row_ranges_[to] = rows;
}

void BatchSearch::truncate(size_t count) {
  searches_.erase(searches_.begin() + static_cast<std::ptrdiff_t>(count), searches_.end());
  row_ranges_.resize(count);
}

void BatchSearch::reorder(std::span<const int32_t> parents) {
  bool same = static_cast<int64_t>(parents.size()) == rows_;
  for (size_t i = 0; same && i < parents.size(); ++i) same = parents[i] == static_cast<int32_t>(i);
  if (same) return;
  for (const BatchDecoder& d : decoders_) d.model.reorder(*d.state, parents);
  rows_ = static_cast<int64_t>(parents.size());
}

int64_t BatchSearch::candidates() const {
  return std::min(width() + std::ssize(banned_), models_[0]->target_words());
}

// Starts the next step on the device, and returns the scores of the step before it.
BatchSearch::StepScores BatchSearch::device_scores() {
  int64_t next_rows = 0;  // an upper bound: searches at their length limit now end
  for (const RowRange& rows : row_ranges_) next_rows += rows.at_limit ? 0 : width();
  device_result_ = &device_->device_step(*decoders_.front().state, next_rows);
  return {.scores = {},
          .ensemble = false,
          .k = candidates(),
          .best = device_result_->best,
          .end_scores = device_result_->endings.values()};
}

BatchSearch::StepScores BatchSearch::next_scores() {
  std::vector<Tensor> scores;
  for (const BatchDecoder& d : decoders_) scores.push_back(d.model.step(*d.state, words_));
  StepScores result;
  result.ensemble = scores.size() > 1;
  result.k = candidates();
  result.scores = result.ensemble ? mean_probabilities(scores) : scores[0];
  result.best = on_host(top_k(result.scores, result.k));
  return result;
}

// Advances all searches by one step. They are independent, and a batch on a GPU has many of them,
// so several threads advance them.
void BatchSearch::advance(const StepScores& scores) {
  bool at_limit = false;
  for (int64_t s = 0; s < std::ssize(searches_); ++s) {
    at_limit = at_limit || row_ranges_[s].at_limit;
    for (int32_t i = 0; i < row_ranges_[s].count; ++i)
      check_row(scores, s, row_ranges_[s].first + i);
  }
  if (at_limit) fetch_end_scores(scores);
  std::exception_ptr failure;
  const int64_t searches = std::ssize(searches_);
  const bool forced = !options_.prefix.empty();
#pragma omp parallel if (searches >= kMinParallelSearches && !options_.sampling && !forced)
  {
    std::vector<std::vector<Candidate>> candidates;
#pragma omp for schedule(static)
    for (int64_t s = 0; s < searches; ++s) {
      try {
        advance(scores, s, candidates);
      } catch (...) {  // an exception must not leave an OpenMP region
        const std::lock_guard hold(mutex_);
        failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

void BatchSearch::check_row(const StepScores& scores, int64_t s, int64_t row) const {
  if (std::isfinite(scores.log_sum(row)) && scores.word(row, 0) >= 0) return;
  fail(ExitCode::model, "the model's scores are not finite at word ",
       searches_[s].beam.length() + 1, " of sentence ", searches_[s].number + 1,
       "; the weights are damaged or training diverged");
}

// Advances search s by one step. `candidates` is working memory that a thread reuses for several
// searches.
void BatchSearch::advance(const StepScores& scores, int64_t s,
                          std::vector<std::vector<Candidate>>& candidates) {
  SentenceSearch& search = searches_[s];
  const int64_t live = search.beam.live(), step = search.beam.length();
  if (std::ssize(candidates) < live) candidates.resize(static_cast<size_t>(live));
  for (int64_t i = 0; i < live; ++i) {
    const int64_t row = row_ranges_[s].first + i;
    candidates[i].clear();
    if (step < std::ssize(options_.prefix))
      candidates[i].push_back(prefix_word(scores, row, step));
    else if (search.beam.at_limit())
      candidates[i].push_back(end_candidate(scores, row));
    else if (options_.sampling)
      candidates[i].push_back(draw(scores, row, search));
    else
      rank_words(scores, row, candidates[i]);
  }
  search.beam.advance(std::span(candidates).first(static_cast<size_t>(live)));
  update_rows(s);
}

void BatchSearch::update_rows(int64_t s) {
  const Beam& beam = searches_[s].beam;
  RowRange& rows = row_ranges_[s];
  rows.count = static_cast<int32_t>(beam.live());
  rows.at_limit = beam.at_limit();
  const std::span<const int32_t> parents = beam.parents();
  for (int64_t i = 0; i < std::ssize(parents); ++i) {
    next_words_[s * width() + i] = beam.last_word(i);
    next_parents_[s * width() + i] = rows.first + parents[i];
  }
}

// Returns the only candidate of a step inside the forced prefix: the word of the prefix. Its
// log-probability is at least kImpossible. So sums stay finite even if the model gives the word
// probability 0.
Candidate BatchSearch::prefix_word(const StepScores& scores, int64_t row, int64_t step) const {
  const int32_t word = options_.prefix[static_cast<size_t>(step)];
  const double stored = columns(scores.scores.window(row, 1), word, 1).values()[0];
  const double log_prob = scores.score(stored) - scores.log_sum(row);
  return {word, std::clamp(log_prob, kImpossible, 0.0)};
}

void BatchSearch::rank_words(const StepScores& scores, int64_t row,
                             std::vector<Candidate>& candidates) const {
  for (int64_t j = 0; j < scores.k; ++j) {
    const int32_t word = scores.word(row, j);
    const double log_prob = std::min(0.0, scores.value(row, j) - scores.log_sum(row));
    const bool possible = word >= 0 && log_prob > kImpossible;
    if (possible && std::ranges::find(banned_, word) == banned_.end())
      candidates.push_back({word, log_prob});
  }
  if (candidates.empty()) candidates.push_back(end_candidate(scores, row));
}

void BatchSearch::fetch_end_scores(const StepScores& scores) const {
  const std::lock_guard hold(mutex_);
  if (scores.end_scores.empty()) scores.end_scores = columns(scores.scores, kEos, 1).values();
}

Candidate BatchSearch::end_candidate(const StepScores& scores, int64_t row) const {
  fetch_end_scores(scores);
  return {kEos, std::min(0.0, scores.score(scores.end_scores[row]) - scores.log_sum(row))};
}

Candidate BatchSearch::draw(const StepScores& scores, int64_t row, const SentenceSearch& search) {
  if (!sampler_) sampler_.emplace(*options_.sampling);
  const RandomDraw which{search.number, search.sample, search.beam.length()};
  const Tensor one = scores.scores.window(row, 1);
  std::vector<double> words = one.values();
  for (double& w : words) w = scores.score(w);
  return sampler_->draw(words, scores.log_sum(row), banned_, which);
}

// Collects the results of searches that have ended. Then reorders the states of the models, so that
// only rows of the other searches remain.
void BatchSearch::keep_live(std::vector<SearchResult>& results) {
  std::vector<int32_t> parents;
  words_.clear();
  size_t remaining = 0;
  for (size_t s = 0; s < searches_.size(); ++s) {
    const SentenceSearch& search = searches_[s];
    RowRange rows = row_ranges_[s];
    if (options_.each_step) options_.each_step(search.number, search.beam);
    if (rows.count == 0) {
      if (options_.watch) options_.watch(search.number, search.beam);
      end(search, search.beam.best(kept()), results);
      continue;
    }
    const auto at = static_cast<std::ptrdiff_t>(s) * width();
    rows.first = static_cast<int32_t>(words_.size());
    words_.insert(words_.end(), next_words_.begin() + at, next_words_.begin() + at + rows.count);
    parents.insert(parents.end(), next_parents_.begin() + at,
                   next_parents_.begin() + at + rows.count);
    move_search(s, remaining++, rows);
  }
  truncate(remaining);
  if (device_) return check_device_choices(parents);
  if (!empty()) reorder(parents);
}

void BatchSearch::end(const SentenceSearch& search, std::vector<Hypothesis> hypotheses,
                      std::vector<SearchResult>& results) {
  const auto at = open_sentences_.find(search.index);
  OpenSentence& sentence = at->second;
  std::ranges::move(hypotheses, std::back_inserter(sentence.n_best));
  if (--sentence.running > 0) return;
  std::ranges::sort(sentence.n_best, ranks_before);
  if (options_.coverage_penalty != 0 && !sentence.n_best.empty()) {
    add_coverage(models_, sentence.source, options_.coverage_penalty, sentence.n_best);
    const auto most = static_cast<size_t>(options_.n_best);
    if (sentence.n_best.size() > most) sentence.n_best.resize(most);
  }
  results.push_back({search.index, search.number, std::move(sentence.n_best)});
  open_sentences_.erase(at);
}

void BatchSearch::check_device_choices(const std::vector<int32_t>& parents) const {
  check(std::ranges::equal(device_result_->words, words_) &&
            std::ranges::equal(device_result_->parents, parents),
        ExitCode::unexpected,
        "the GPU continues with other hypotheses than the host; please report this");
}

}  // namespace fovea

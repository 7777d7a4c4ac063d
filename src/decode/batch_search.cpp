#include "decode/batch_search.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <limits>

#include "text/vocabulary.h"

namespace fovea {
namespace {

constexpr int64_t kExtraLength = 10;
constexpr int64_t kMinParallelSearches = 64;  // for fewer, waking threads takes longer

// The maximum number of words of a translation. `needed` words must fit if the model permits.
int64_t length_limit(const Model& model, int64_t source_pieces, const SearchOptions& options,
                     int64_t needed) {
  const auto context = std::ssize(model.frame().target_prefix);
  const double by_factor = options.max_length_factor * static_cast<double>(source_pieces);
  int64_t limit = static_cast<int64_t>(std::min(by_factor, 1e9)) + kExtraLength;
  if (options.max_length > 0) limit = std::min(limit, options.max_length - context);
  return std::clamp<int64_t>(std::max(limit, needed), 1, model.max_length() - context);
}

// Pieces that an unfinished translation lacks if it has the prefix: those of the terms and </s>.
int64_t needed_words(const SentenceConstraints& own) {
  int64_t needed = std::ssize(own.prefix) + 1;
  for (const TermPieces& term : own.terms)
    needed += std::ssize(*std::ranges::min_element(term, {}, &std::vector<int32_t>::size));
  return needed;
}

}  // namespace

BatchSearch::BatchSearch(std::span<const Model* const> models, const SearchOptions& options)
    : models_(models), options_(options), selection_(options, models.front()->frame()),
      decoder_(models) {}

bool BatchSearch::open() const { return empty() || (samples() == 1 && decoder_.extendable()); }

// Appends the rows of these sentences to the batch, one row per sample of each sentence.
void BatchSearch::add_rows(const TokenBatch& source) {
  if (!empty()) return decoder_.extend(source);
  device_.reset();
  decoder_.start(source);
  started_ = constrained_ = false;
  words_.clear();
  stride_ = 0;
  std::vector<int32_t> parents;
  for (int32_t i = 0; i < source.sentences(); ++i)
    parents.insert(parents.end(), static_cast<size_t>(samples()), i);
  decoder_.reorder(parents);
}

void BatchSearch::add(const TokenBatch& source, std::span<const int64_t> numbers,
                      std::span<const SentenceConstraints> constraints) {
  add_rows(source);
  const bool covers = options_.coverage_penalty != 0;
  const int64_t before = std::ssize(frame().source_prefix), around = frame().source_pieces();
  for (int64_t i = 0; i < source.sentences(); ++i, ++added_) {
    const int32_t first = source.offsets[i], end = source.offsets[i + 1];
    const int64_t pieces = end - first - around;
    OpenSentence& sentence = open_sentences_[added_] = {{}, samples()};
    if (covers) {
      const auto ids = source.ids.subspan(first + before, pieces);
      sentence.source.assign(ids.begin(), ids.end());
      sentence.source.push_back(kEos);
    }
    SentenceConstraints own;
    if (!constraints.empty()) own = constraints[i];
    if (own.prefix.empty()) own.prefix = options_.prefix;
    add_searches(pieces, numbers[i], own);
  }
  next_words_.resize(searches_.size() * static_cast<size_t>(stride_));
  next_parents_.resize(next_words_.size());
}

// Adds the searches for the last sentence.
void BatchSearch::add_searches(int64_t source_pieces, int64_t number,
                               const SentenceConstraints& own) {
  constrained_ = constrained_ || !own.prefix.empty() || !own.terms.empty();
  check(own.terms.empty() || !options_.sampling, ExitCode::usage, "sentence ", number + 1,
        " has required terms, which sampling does not support; search instead");
  check(std::ssize(own.terms) <= RequiredTerms::kMost, ExitCode::usage, "sentence ", number + 1,
        " has ", own.terms.size(), " required terms, at most ", RequiredTerms::kMost,
        " are supported; split it");
  const auto terms = own.terms.empty() ? nullptr : std::make_shared<const RequiredTerms>(own.terms);
  const BeamOptions options = beam_options(source_pieces, own);
  stride_ = std::max(stride_, options.size);
  for (int64_t sample = 0; sample < samples(); ++sample) {
    searches_.push_back({added_, number, sample, Beam(options), terms, own.prefix});
    row_ranges_.push_back(
        {static_cast<int32_t>(words_.size()), 1, searches_.back().beam.at_limit()});
    words_.push_back(frame().start);
  }
}

std::vector<SearchResult> BatchSearch::step() {
  std::vector<SearchResult> results;
  if (!started_) start_device_search();
  started_ = true;
  if (options_.wanted) drop_unwanted(results);
  if (!empty()) {
    if (device_)
      step_on_device();
    else
      step_on_host();
    keep_live(results);
  }
  if (empty()) {
    device_.reset();
    decoder_.clear();
  }
  return results;
}

BeamOptions BatchSearch::beam_options(int64_t source_pieces, const SentenceConstraints& own) const {
  const int64_t needed = needed_words(own);
  int64_t limit = std::numeric_limits<int64_t>::max();
  for (const Model* model : models_)
    limit = std::min(limit, length_limit(*model, source_pieces, options_, needed));
  check(needed <= limit, ExitCode::usage, "the prefix", own.terms.empty() ? "" : " and the terms",
        " have ", needed - 1, " pieces, and the model takes ", limit - 1, "; shorten ",
        own.terms.empty() ? "it" : "them");
  const bool all = options_.coverage_penalty != 0;  // coverage may move any of them to the top
  const bool counts = options_.rule == BeamRule::transformers;
  return {.size = std::max(width(), own.terms.empty() ? 1 : std::ssize(own.terms) + 1),
          .n_best = options_.sampling ? 1
                    : all             ? options_.beam
                                      : options_.n_best,
          .length_penalty = options_.length_penalty,
          .max_length = limit,
          .early_stop = options_.early_stop,
          .rule = options_.rule,
          .early_stopping = options_.early_stopping,
          .context = counts ? std::ssize(frame().target_prefix) : 0,
          .forced_end = options_.forced_end,
          .terms = std::ssize(own.terms),
          .start = frame().before_first()};
}

// Lets the device run the search if it can.
void BatchSearch::start_device_search() {
  const auto* const device = models_.front()->as<DeviceDecodable>();
  const bool by_device = device && models_.size() == 1 && !options_.sampling && !constrained_ &&
                         options_.rule == BeamRule::fovea && options_.forced_end &&
                         !options_.renormalize && frame().target_prefix.empty() &&
                         !selection_.by_hypothesis(nullptr);
  if (!by_device) return;
  BeamRules rules{.width = width(),
                  .n_best = searches_.front().beam.options().n_best,
                  .candidates = candidates(),
                  .end = kEos,
                  .banned = selection_.banned(),
                  .length_penalty = options_.length_penalty,
                  .early_stop = options_.early_stop,
                  .max_lengths = {}};
  for (const SentenceSearch& search : searches_)
    rules.max_lengths.push_back(static_cast<int32_t>(search.beam.options().max_length));
  if (DeviceSearch::supports(rules)) device_.emplace(*device, decoder_.first_state(), rules);
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
  if (!empty()) decoder_.reorder(from);
}

void BatchSearch::move_search(size_t from, size_t to, const RowRange& rows) {
  if (to < from) searches_[to] = std::move(searches_[from]);
  row_ranges_[to] = rows;
}

void BatchSearch::truncate(size_t count) {
  searches_.erase(searches_.begin() + static_cast<std::ptrdiff_t>(count), searches_.end());
  row_ranges_.resize(count);
}

// The number of best words of each row that suffice for WordSelection::rank.
int64_t BatchSearch::candidates() const {
  size_t most = 0;
  for (const std::vector<int32_t>& words : removed_) most = std::max(most, words.size());
  const int64_t own = options_.rule == BeamRule::fovea ? stride_ : 2 * stride_;
  return std::min(own + std::ssize(selection_.banned()) + static_cast<int64_t>(most),
                  models_[0]->target_words());
}

// Sets removed_ for the words of this step.
void BatchSearch::collect_removed() {
  removed_.clear();
  const bool any = std::ranges::any_of(searches_, [&](const SentenceSearch& search) {
    return selection_.by_hypothesis(search.terms.get());
  });
  if (!any) return;
  removed_.resize(words_.size());
  for (size_t s = 0; s < searches_.size(); ++s)
    for (int64_t i = 0; i < searches_[s].beam.live(); ++i)
      removed_[row_ranges_[s].first + i] =
          selection_.removed({searches_[s].beam, i, searches_[s].terms.get()});
}

std::span<const int32_t> BatchSearch::removed(int64_t row) const {
  if (removed_.empty()) return {};
  return removed_[static_cast<size_t>(row)];
}

// Starts the next step on the device and selects by the scores of the current one.
void BatchSearch::step_on_device() {
  int64_t next_rows = 0;  // an upper bound: a search at its length limit ends with this step
  for (const RowRange& rows : row_ranges_) next_rows += rows.at_limit ? 0 : width();
  advance(StepScores(device_->step(next_rows), candidates()));
}

void BatchSearch::step_on_host() {
  collect_removed();
  advance(StepScores(decoder_.step(words_), decoder_.ensemble(), candidates()));
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
  if (at_limit) scores.fetch_ends();
  std::exception_ptr failure;
  const int64_t searches = std::ssize(searches_);
#pragma omp parallel if (searches >= kMinParallelSearches && !options_.sampling && !constrained_)
  {
    CandidateLists candidates;
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
  if (scores.finite(row)) return;
  fail(ExitCode::model, "the model's scores are not finite at word ",
       searches_[s].beam.length() + 1, " of sentence ", searches_[s].number + 1,
       "; the weights are damaged or training diverged");
}

void BatchSearch::advance(const StepScores& scores, int64_t s, CandidateLists& candidates) {
  SentenceSearch& search = searches_[s];
  const std::vector<int32_t>& context = frame().target_prefix;
  if (search.context < std::ssize(context)) {  // the beam begins after the context
    next_words_[s * stride_] = context[static_cast<size_t>(search.context++)];
    next_parents_[s * stride_] = row_ranges_[s].first;
    return;
  }
  const int64_t live = search.beam.live(), step = search.beam.length();
  if (std::ssize(candidates) < live) candidates.resize(static_cast<size_t>(live));
  for (int64_t i = 0; i < live; ++i) {
    const int64_t row = row_ranges_[s].first + i;
    const LiveRow hypothesis{search.beam, i, search.terms.get()};
    if (step < std::ssize(search.prefix))
      candidates[i] = {
          selection_.forced(scores, row, hypothesis, search.prefix[static_cast<size_t>(step)])};
    else if (options_.sampling && !search.beam.must_end())
      candidates[i] = {selection_.draw(
          scores, row, {search.number, search.sample, search.beam.length()}, removed(row))};
    else
      selection_.rank(scores, row, hypothesis, removed(row), candidates[i]);
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
    next_words_[s * stride_ + i] = beam.last_word(i);
    next_parents_[s * stride_ + i] = rows.first + parents[i];
  }
}

// Collects the results of finished searches and reorders the states to the rows of the others.
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
    const auto at = static_cast<std::ptrdiff_t>(s) * stride_;
    rows.first = static_cast<int32_t>(words_.size());
    words_.insert(words_.end(), next_words_.begin() + at, next_words_.begin() + at + rows.count);
    parents.insert(parents.end(), next_parents_.begin() + at,
                   next_parents_.begin() + at + rows.count);
    move_search(s, remaining++, rows);
  }
  truncate(remaining);
  if (device_) return device_->check_choices(words_, parents);
  if (!empty()) decoder_.reorder(parents);
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

}  // namespace fovea

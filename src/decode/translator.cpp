#include "decode/translator.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include "decode/framed_attention.h"
#include "decode/model_capabilities.h"
#include "text/batch.h"
#include "text/corpus.h"

namespace fovea {
namespace {

constexpr int64_t kAttentionTokens = 1024;  // maximum number of pieces of an AttentionBatch

// A batch of pairs of source and translation, for which the attention maps are computed together.
struct AttentionBatch {
  std::vector<TextPair> pairs = {};
  int64_t pieces = 0;
  std::vector<std::pair<Translation*, size_t>> members = {};  // and an index in its n_best
};

std::span<const int32_t> without_end(const std::vector<int32_t>& ids) {
  return std::span(ids).first(ids.size() - 1);
}

void align(const Vocabulary& source, const Vocabulary& target, std::span<const AttentionMap> maps,
           std::span<const int32_t> source_ids, Alternative& alternative) {
  const SoftAlignment words =
      by_word(mean_attention(maps, "cross"), target.text_words_of(alternative.ids),
              source.text_words_of(source_ids));
  alternative.alignment = hard_alignment(words);
  alternative.nearest = nearest_targets(words);
}

}  // namespace

Translator::Translator(std::vector<const Model*> models, Vocabulary source, Vocabulary target,
                       TranslateOptions options)
    : models_(std::move(models)), source_(std::move(source)), target_(std::move(target)),
      options_(std::move(options)), longest_(std::numeric_limits<int64_t>::max()) {
  options_.search.check();
  for (const Model* model : models_)
    longest_ = std::min(longest_, model->max_length() - model->frame().source_pieces());
}

std::vector<Translation> Translator::translate(std::span<const std::string> lines,
                                               const LineNames& names) const {
  std::vector<Translation> translations(lines.size());
  std::vector<std::vector<int32_t>> sources;
  std::vector<int64_t> lengths, line_indices;  // indices: which lines are not empty
  for (size_t i = 0; i < lines.size(); ++i) {
    const int64_t number =
        names.lines.empty() ? names.first + static_cast<int64_t>(i) : names.lines[i];
    auto ids = encode(lines[i], names.file + ":" + std::to_string(number));
    if (ids.empty()) continue;
    lengths.push_back(std::ssize(ids));
    line_indices.push_back(static_cast<int64_t>(i));
    sources.push_back(std::move(ids));
  }

  std::mutex mutex;
  const SearchOptions options = with_serial_callbacks(options_.search, mutex);
  int64_t done = std::ssize(lines) - std::ssize(line_indices);
  const BatchOptions budget{.tokens = options_.batch_tokens, .sentences = options_.batch_sentences};
  for (const std::vector<int64_t>& batch : batches_by_length(lengths, budget)) {
    in_shares(models_, std::ssize(batch), [&](std::span<const int64_t> share) {
      RollingTranslation rolling(*this, options);
      std::vector<RollingTranslation::Source> own;
      for (const int64_t i : share)
        own.push_back(
            {names.first - 1 + line_indices[batch[i]], sources[batch[i]],
             names.constraints.empty() ? nullptr : &names.constraints[line_indices[batch[i]]]});
      rolling.add(own);
      while (!rolling.empty())
        for (auto& [number, translation] : rolling.search_step())
          translations[number - names.first + 1] = std::move(translation);
    });
    done += std::ssize(batch);
    if (options_.progress && !options_.progress(done)) break;
  }
  std::vector<Translation*> all;
  for (Translation& translation : translations) all.push_back(&translation);
  attend(all);
  return translations;
}

std::shared_ptr<const Model> Translator::with_intervention(std::vector<int32_t> source) const {
  assert(models_.size() == 1);
  source.push_back(kEos);
  const WhatIf what_if = options_.what_if.in_pieces(source_.words_of(source));
  const SentenceFrame& frame = models_.front()->frame();
  auto altered =
      explainable(*models_.front()).with_intervention(in_frame(what_if, std::ssize(source), frame));
  altered->set_frame(frame);
  return altered;
}

std::vector<int32_t> Translator::encode(const std::string& line, const std::string& where) const {
  const CleanLine clean = clean_line(line);
  std::vector<int32_t> ids = source_.encode(clean.text);
  const bool too_long = std::ssize(ids) > longest_;
  if (options_.warn && clean.replaced)
    repaired_.add("{}: bytes that are not UTF-8 were replaced by U+FFFD", where);
  if (options_.warn && (clean.cut || too_long))
    truncated_.add("{}: {} pieces{}, the model reads at most {}; truncated, split the line", where,
                   ids.size(), clean.cut ? " and more" : "", longest_);
  if (too_long) ids.resize(static_cast<size_t>(longest_));
  return ids;
}

Alternative Translator::alternative(Hypothesis h) const {
  const auto words = std::span(h.words).first(h.words.size() - 1);
  return {.text = target_.decode(words),
          .score = h.score,
          .log_prob = h.log_prob,
          .ids = h.words,
          .pieces = target_.pieces(h.words),
          .log_probs = std::move(h.log_probs)};
}

void Translator::fill_in(Translation& t, std::vector<Hypothesis> hypotheses) const {
  t.source_pieces = source_.pieces(t.source_ids);
  for (Hypothesis& h : hypotheses) t.n_best.push_back(alternative(std::move(h)));
  if (source_.decode(t.source_ids).find("\uFFFD") == std::string::npos)
    for (Alternative& a : t.n_best)
      for (size_t at = 0; (at = a.text.find("\uFFFD", at)) != std::string::npos;)
        a.text.erase(at, 3);
  if (!t.n_best.empty()) t.text = t.n_best.front().text;  // else: line not wanted
}

void Translator::attend(std::span<Translation* const> translations) const {
  if (!options_.alignment && !options_.attention) return;
  AttentionBatch batch;
  const auto flush = [&] {
    if (batch.members.empty()) return;
    const auto& altered = batch.members.front().first->altered;
    auto maps = attention_of(altered ? *altered : *models_.front(), batch.pairs);
    for (size_t i = 0; i < batch.members.size(); ++i) {
      auto& [translation, n] = batch.members[i];
      if (options_.alignment)
        align(source_, target_, maps[i], translation->source_ids, translation->n_best[n]);
      if (options_.attention && n == 0) translation->attention = std::move(maps[i]);
    }
    batch = {};
  };
  for (Translation* t : translations) {
    const size_t wanted =
        options_.alignment ? t->n_best.size() : std::min<size_t>(1, t->n_best.size());
    for (size_t n = 0; n < wanted; ++n) {
      const std::vector<int32_t>& words = t->n_best[n].ids;
      batch.pairs.push_back({without_end(t->source_ids), without_end(words)});
      batch.pieces += std::ssize(t->source_ids) + std::ssize(words);
      batch.members.emplace_back(t, n);
      if (batch.pieces > kAttentionTokens) flush();
    }
  }
  flush();
}

RollingTranslation::RollingTranslation(const Translator& translator)
    : RollingTranslation(translator, translator.options_.search) {}

RollingTranslation::RollingTranslation(const Translator& translator, SearchOptions options)
    : translator_(translator), options_(std::move(options)), models_(translator.models_),
      search_(models_, options_) {
  if (translator.options_.tree)
    options_.watch = [this](int64_t number, const Beam& beam) {
      in_progress_.at(number).tree = beam.nodes();
    };
}

void RollingTranslation::add(std::span<const Line> lines) {
  std::vector<std::vector<int32_t>> encoded;
  encoded.reserve(lines.size());  // not reallocated, because `sources` refers to its elements
  std::vector<Source> sources;
  for (const Line& line : lines) {
    encoded.push_back(translator_.encode(line.text, "input:" + std::to_string(line.number + 1)));
    if (encoded.back().empty())
      done_.push_back({line.number, {}});
    else
      sources.push_back({line.number, encoded.back(), line.constraints});
  }
  add(sources);
}

void RollingTranslation::add(std::span<const Source> sources) {
  PackedSentences packed;
  std::vector<int64_t> numbers;
  std::vector<SentenceConstraints> constraints;
  for (const Source& source : sources) {
    packed.add_source(source.ids, models_.front()->frame());
    Translation& translation = in_progress_[source.number];
    translation.source_ids = source.ids;
    translation.source_ids.push_back(kEos);
    constraints.push_back(source.constraints ? *source.constraints : SentenceConstraints());
    if (!translator_.options_.what_if.empty()) {
      translation.altered = translator_.with_intervention(source.ids);
      models_.front() = translation.altered.get();
    }
    numbers.push_back(source.number);
  }
  if (!numbers.empty()) search_.add({packed.ids, packed.offsets}, numbers, constraints);
}

std::vector<RollingTranslation::Done> RollingTranslation::search_step() {
  std::vector<Done> done = std::exchange(done_, {});
  if (search_.empty()) return done;
  for (SearchResult& result : search_.step()) {
    done.push_back({result.number, std::move(in_progress_.extract(result.number).mapped())});
    translator_.fill_in(done.back().translation, std::move(result.n_best));
  }
  return done;
}

std::vector<RollingTranslation::Done> RollingTranslation::step() {
  std::vector<Done> done = search_step();
  std::vector<Translation*> translations;
  for (Done& one : done) translations.push_back(&one.translation);
  translator_.attend(translations);
  return done;
}

}  // namespace fovea

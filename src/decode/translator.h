#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "decode/attention_alignment.h"
#include "decode/batch_search.h"
#include "decode/search.h"
#include "decode/word_intervention.h"
#include "models/model.h"
#include "text/vocabulary.h"

namespace fovea {

// The options of a Translator.
struct TranslateOptions {
  SearchOptions search = {};
  int64_t batch_tokens = 2048;  // number of source pieces of a batch
  int64_t batch_sentences = 64;
  bool alignment = false;   // word alignment of every translation
  bool attention = false;   // all attention maps of the best translation
  bool tree = false;        // the search tree of every translation
  bool warn = true;         // logs warnings about truncated or repaired lines
  WordWhatIf what_if = {};  // REQUIRES: one model, and only one line that is not empty
  // After each batch, translate() calls `progress` with the number of lines that are translated. If
  // it returns false, translate() stops.
  std::function<bool(int64_t done)> progress = nullptr;
};

// One of the n best translations of a line.
struct Alternative {
  std::string text;
  double score = 0, log_prob = 0;
  std::vector<int32_t> ids;         // with </s>, without the other pieces of the frame
  std::vector<std::string> pieces;  // of ids
  std::vector<float> log_probs;     // of ids
  Links alignment = {};             // links of words; empty without options.alignment
  std::vector<int> nearest = {};    // nearest_targets(); empty without options.alignment
};

// The translation of a line.
struct Translation {
  std::string text;                 // of the best translation
  std::vector<Alternative> n_best;  // best first; empty if the line is empty or not wanted
  std::vector<int32_t> source_ids;  // like ids; empty for an empty line
  std::vector<std::string> source_pieces;
  std::vector<AttentionMap> attention = {};   // of the best translation, if requested
  std::vector<BeamNode> tree = {};            // of the search, if requested
  std::shared_ptr<const Model> altered = {};  // the model with the intervention, if there is one
};

// The file name and the line numbers of the texts to translate, which appear in warnings.
struct LineNames {
  std::string file = "input";
  int64_t first = 1;  // the number of the first line; random numbers depend on it, too
  // Line number of each text if the texts are parts of lines.
  std::span<const int64_t> lines = {};
  std::span<const SentenceConstraints> constraints = {};  // of each text, or none
};

// A translator of lines of text. The models must outlive it. Each line has one translation, which
// does not depend on the other lines. If options.warn is false, thread-safe.
class Translator {
 public:
  // If there are several models, they are an ensemble.
  Translator(std::vector<const Model*> models, Vocabulary source, Vocabulary target,
             TranslateOptions options);

  std::vector<Translation> translate(std::span<const std::string> lines,
                                     const LineNames& names = {}) const;

 private:
  friend class RollingTranslation;
  std::vector<int32_t> encode(const std::string& line, const std::string& where) const;
  std::shared_ptr<const Model> with_intervention(std::vector<int32_t> source) const;
  Alternative alternative(Hypothesis hypothesis) const;
  // Sets all fields of `translation` that follow from the hypotheses. REQUIRES: source_ids is set.
  void fill_in(Translation& translation, std::vector<Hypothesis> hypotheses) const;
  void attend(std::span<Translation* const> translations) const;  // if options.attention

  std::vector<const Model*> models_;
  Vocabulary source_, target_;
  TranslateOptions options_;
  int64_t longest_;  // maximum number of pieces of a source, without its frame
  mutable LineWarnings repaired_{"lines that are not UTF-8"},
      truncated_{"lines that were truncated"};
};

// A step-by-step translation with continuous batching (BatchSearch): the caller can add lines while
// other lines are being translated. A line is returned as soon as its translation is complete. Its
// translation is the same as without other lines. Not thread-safe.
class RollingTranslation {
 public:
  // The translator must outlive it.
  explicit RollingTranslation(const Translator& translator);
  RollingTranslation(const RollingTranslation&) = delete;
  RollingTranslation& operator=(const RollingTranslation&) = delete;

  bool empty() const { return search_.empty() && done_.empty(); }
  bool open() const { return search_.open(); }  // whether lines may be added now
  // A line to translate. `number` identifies it in callbacks and selects its random numbers.
  // Warnings show number + 1. At any time, the lines that are not yet complete must have different
  // numbers.
  struct Line {
    int64_t number;
    const std::string& text;
    const SentenceConstraints* constraints = nullptr;  // null: none
  };
  void add(std::span<const Line> lines);
  struct Done {
    int64_t number;
    Translation translation;
  };
  std::vector<Done> step();  // returns the lines that are complete after this step

 private:
  friend class Translator;
  struct Source {
    int64_t number;
    const std::vector<int32_t>& ids;         // not empty, without its frame
    const SentenceConstraints* constraints;  // null: none
  };
  RollingTranslation(const Translator& translator, SearchOptions options);
  void add(std::span<const Source> sources);
  std::vector<Done> search_step();  // like step(), but without attention and alignment

  const Translator& translator_;
  SearchOptions options_;
  std::vector<const Model*> models_;
  BatchSearch search_;
  std::map<int64_t, Translation> in_progress_;  // by Line::number
  std::vector<Done> done_;                      // empty lines, which need no search
};

}  // namespace fovea

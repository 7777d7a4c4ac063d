#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/log.h"
#include "decode/alignment.h"
#include "decode/batch_search.h"
#include "decode/search.h"
#include "decode/word_what_if.h"
#include "models/model.h"
#include "text/vocabulary.h"

namespace fovea {

struct TranslateOptions {
  SearchOptions search = {};
  int64_t batch_tokens = 2048;  // source pieces of a batch
  int64_t batch_sentences = 64;
  bool alignment = false;   // word alignment of every translation
  bool attention = false;   // all attention maps of the best translation
  bool tree = false;        // what the search kept at each step
  bool warn = true;         // of lines that had to be cut or repaired
  WordWhatIf what_if = {};  // for one line that is not empty, by one model
  // Called after each batch with the number of lines done; false leaves off.
  std::function<bool(int64_t done)> progress = nullptr;
};

// One of the n best translations of a line.
struct Alternative {
  std::string text;
  double score = 0, log_prob = 0;
  std::vector<int32_t> ids;         // with </s>
  std::vector<std::string> pieces;  // of ids
  std::vector<float> log_probs;     // of ids
  Links alignment = {};             // words to words; on request,
  std::vector<int> nearest = {};    // and for each source word the nearest_targets()
};

struct Translation {
  std::string text;                 // of the best
  std::vector<Alternative> n_best;  // best first; empty for an empty line, or one not wanted
  std::vector<int32_t> source_ids;  // with </s>; empty for an empty line
  std::vector<std::string> source_pieces;
  std::vector<AttentionMap> attention = {};   // of the best; on request
  std::vector<BeamNode> tree = {};            // of the search; on request
  std::shared_ptr<const Model> altered = {};  // what translated it, where there was a what-if
};

// Lines to translate and how to call them in warnings.
struct LineNames {
  std::string file = "input";
  int64_t first = 1;  // the number of the first line; random numbers depend on it too
  std::span<const int64_t> lines = {};  // for warnings, where these are pieces of lines
};

// Translates lines of text. Models and vocabularies must outlive it. Each line gives one
// translation, the same whatever else is translated with it. Threads may share one that does not
// warn.
class Translator {
 public:
  // Several models are an ensemble.
  Translator(std::vector<const Model*> models, Vocabulary source, Vocabulary target,
             TranslateOptions options);

  std::vector<Translation> translate(std::span<const std::string> lines,
                                     const LineNames& names = {}) const;

 private:
  friend class RollingTranslation;
  std::vector<int32_t> encode(const std::string& line, const std::string& where) const;
  std::shared_ptr<const Model> altered(const std::vector<std::vector<int32_t>>& sources) const;
  Alternative alternative(Hypothesis hypothesis) const;
  // REQUIRES: source_ids are there.
  void fill_in(Translation& translation, std::vector<Hypothesis> found) const;
  void attend(const Model& model, std::span<Translation> translations) const;

  std::vector<const Model*> models_;
  Vocabulary source_, target_;
  TranslateOptions options_;
  int64_t longest_;  // pieces of a source without </s>
  mutable LineWarnings repaired_{"lines that are not UTF-8"}, cut_{"lines that were cut off"};
};

// Lines on their way through a translator, step by step: others may be added while some are under
// way (BatchSearch), and each is there as soon as it is done, as it would be by itself.
class RollingTranslation {
 public:
  explicit RollingTranslation(const Translator& translator);  // which must outlive it
  RollingTranslation(const RollingTranslation&) = delete;
  RollingTranslation& operator=(const RollingTranslation&) = delete;

  bool empty() const { return search_.empty() && done_.empty(); }
  bool open() const { return search_.open(); }  // whether lines may be added now
  // `number` is the line's in warnings, draws and callbacks, less 1, and that of no other line that
  // is under way.
  struct Line {
    int64_t number;
    const std::string& text;
  };
  void add(std::span<const Line> lines);
  struct Done {
    int64_t number;
    Translation translation;
  };
  std::vector<Done> step();  // those that are done with this step

 private:
  const Translator& translator_;
  SearchOptions options_;
  std::vector<const Model*> models_;
  BatchSearch search_;
  std::map<int64_t, Translation> under_way_;  // by number
  std::vector<Done> done_;                    // that need no search
};

}  // namespace fovea

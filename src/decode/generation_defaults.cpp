#include "decode/generation_defaults.h"

#include "base/check.h"
#include "base/utf8.h"

namespace fovea {
namespace {

constexpr double kNoFactor = 1000;  // the maximum: the length does not depend on the source

int32_t id_of(const char* key, const std::string& piece, const Vocabulary& vocabulary) {
  const int32_t id = vocabulary.id(piece);
  check(id != kUnk || piece == vocabulary.name(kUnk), ExitCode::model, "model.generation.", key,
        ": the vocabulary has no piece '", printable(piece), "'; name one of its pieces");
  return id;
}

std::vector<int32_t> ids_of(const char* key, const std::vector<std::string>& pieces,
                            const Vocabulary& vocabulary) {
  std::vector<int32_t> ids;
  for (const std::string& piece : pieces) ids.push_back(id_of(key, piece, vocabulary));
  return ids;
}

}  // namespace

SentenceFrame sentence_frame(const GenerationConfig& config, const Vocabulary& source,
                             const Vocabulary& target) {
  return {.start = id_of("start", config.start, target),
          .source_prefix = ids_of("source_prefix", config.source_prefix, source),
          .source_suffix = ids_of("source_suffix", config.source_suffix, source),
          .target_prefix = ids_of("target_prefix", config.target_prefix, target),
          .source_end = config.source_end};
}

SearchOptions search_defaults(const GenerationConfig& config, const Vocabulary& target) {
  SearchOptions options;
  options.beam = config.beam;
  options.length_penalty = config.length_penalty;
  options.rule = config.beam_rule;
  options.early_stopping = config.early_stopping;
  options.min_length = config.min_length;
  options.max_length = config.max_length;
  if (config.max_length > 0) options.max_length_factor = kNoFactor;
  options.forced_end = config.forced_end;
  options.no_repeat_ngram = config.no_repeat_ngram;
  options.suppress = ids_of("suppress", config.suppress, target);
  options.renormalize = config.renormalize;
  return options;
}

}  // namespace fovea

#include "models/generation_config.h"

#include <algorithm>

#include "base/settings.h"

namespace fovea {

void GenerationConfig::describe(Settings& s) {
  s.field("start", start, "piece that the decoder reads first");
  s.field("source_prefix", source_prefix, "pieces before each source");
  s.field("source_suffix", source_suffix, "pieces after each source, before its </s>");
  s.field("source_end", source_end, "</s> after each source");
  s.field("target_prefix", target_prefix,
          "pieces at the beginning of each translation, which are not part of its text");
  s.field("beam", beam, "default of the beam size").between(1, 1024);
  s.field("length_penalty", length_penalty, "default of A: score = log-probability / length^A")
      .between(-10, 10);
  s.choice("beam_rule", beam_rule,
           {{"fovea", BeamRule::fovea}, {"transformers", BeamRule::transformers}},
           "rule of the beam search; transformers: as in Hugging Face, CTranslate2 and fairseq");
  s.choice(
      "early_stopping", early_stopping,
      {{"false", EarlyStopping::no}, {"true", EarlyStopping::yes}, {"never", EarlyStopping::never}},
      "beam_rule transformers: stop as soon as `beam` translations are finished");
  s.field("min_length", min_length,
          "minimum pieces of a translation with target_prefix and </s>; 0: no minimum")
      .between(0, 65536);
  s.field("max_length", max_length,
          "maximum pieces of a translation with target_prefix and </s>; 0: from the source")
      .between(0, 65536);
  s.field("forced_end", forced_end, "the last of max_length pieces is </s>; false: any piece");
  s.field("no_repeat_ngram", no_repeat_ngram,
          "number of pieces that never occur twice in the same order; 0: any may")
      .between(0, 65536);
  s.field("suppress", suppress, "pieces that are never generated");
  s.field("renormalize", renormalize,
          "the probabilities of the pieces that may be generated sum to 1");
}

int64_t GenerationConfig::added_pieces() const {
  const size_t source = source_prefix.size() + source_suffix.size() + (source_end ? 1 : 0);
  return static_cast<int64_t>(std::max(source, 1 + target_prefix.size()));
}

void GenerationConfig::check(int64_t longest, ExitCode code) const {
  fovea::check(added_pieces() < longest, code,
               "model.generation: the pieces around a sentence are ", added_pieces(),
               ", and model.max_length is ", longest,
               "; shorten source_prefix, source_suffix and target_prefix");
  fovea::check(max_length == 0 || min_length <= max_length, code,
               "model.generation.min_length: ", min_length, " is more than max_length, which is ",
               max_length, "; lower it");
  fovea::check(
      early_stopping == EarlyStopping::no || beam_rule == BeamRule::transformers, code,
      "model.generation.early_stopping: only beam_rule transformers has it; remove it, or ",
      "set model.generation.beam_rule");
}

}  // namespace fovea

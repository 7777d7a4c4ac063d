#include "train/unused_settings.h"

#include <fmt/format.h>

#include <map>

namespace fovea {
namespace {

// A setting, whether it has an effect, and the settings that it applies to.
struct SettingUse {
  const char* path;
  bool used;
  std::string applies_to;
};

std::vector<SettingUse> uses_of_vocabulary(const VocabularyOptions& v) {
  const bool made = v.source.empty();
  const bool learnt = v.kind == VocabularyKind::unigram || v.kind == VocabularyKind::bpe;
  const char* const from_text = made ? "" : " if the vocabulary is made from the text";
  return {{"vocabulary.min_count", made && !learnt,
           fmt::format("vocabulary.kind words, characters, pieces and tokens{}", from_text)},
          {"vocabulary.character_coverage", made && learnt,
           fmt::format("vocabulary.kind unigram and bpe{}", from_text)},
          {"vocabulary.byte_fallback", made && learnt,
           fmt::format("vocabulary.kind unigram and bpe{}", from_text)}};
}

// The settings that apply only to one attention mechanism of a recurrent model.
std::vector<SettingUse> uses_of_attention(const ModelConfig& m) {
  const AttentionConfig& a = m.attention;
  const bool attends = a.attends(), scored = attends && a.kind != "window";
  const bool local = a.kind == "local-m" || a.kind == "local-p";
  const bool adds = scored && (a.score_name() == "additive" || a.score_name() == "concat");
  const bool sample = a.kind == "hard-sample";
  std::vector<SettingUse> uses{{"model.attention_size", adds || a.kind == "local-p",
                                "model.score additive and concat and model.attention local-p"}};
  if (m.type != "recurrent") return uses;
  const std::vector<SettingUse> more{
      {"model.decoder", attends, "models with attention"},
      {"model.readout", attends, "models with attention"},
      {"model.input_feeding", attends && m.decoder == DecoderForm::luong,
       "model.decoder luong with attention"},
      {"model.window", local, "model.attention local-m and local-p"},
      {"model.slack", a.kind == "forward", "model.attention forward"},
      {"model.gaussians", a.kind == "window", "model.attention window"},
      {"model.location_length", scored && a.score == "location", "model.score location"},
      {"model.reward_weight", sample, "model.attention hard-sample"},
      {"model.reward_discount", sample, "model.attention hard-sample"},
      {"model.entropy_weight", sample, "model.attention hard-sample"},
      {"model.baseline_decay", sample, "model.attention hard-sample"}};
  uses.insert(uses.end(), more.begin(), more.end());
  return uses;
}

std::map<std::string, std::string> values_of(TrainOptions options) {
  Settings settings;
  options.describe(settings);
  std::map<std::string, std::string> values;
  for (const auto& [path, value] : settings.values()) values[path] = value;
  return values;
}

}  // namespace

std::vector<std::string> unused_settings(const TrainOptions& options) {
  TrainOptions fresh;
  fresh.model.type = options.model.type;  // so that both have the same settings
  fresh.data.task = options.data.task;
  const auto defaults = values_of(fresh), values = values_of(options);
  std::vector<SettingUse> uses = uses_of_vocabulary(options.vocabulary);
  if (options.model.type != "transformer") {
    const std::vector<SettingUse> more = uses_of_attention(options.model);
    uses.insert(uses.end(), more.begin(), more.end());
  }
  std::vector<std::string> unused;
  for (const SettingUse& use : uses) {
    const auto value = values.find(use.path);
    if (use.used || value == values.end() || value->second == defaults.at(use.path)) continue;
    unused.push_back(fmt::format("{}: {} has no effect: it applies only to {}; remove it", use.path,
                                 value->second, use.applies_to));
  }
  return unused;
}

}  // namespace fovea

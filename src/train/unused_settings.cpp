#include "train/unused_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

namespace fovea {
namespace {

// A setting, whether it has an effect, and the values of other settings for which it has an effect.
struct SettingUse {
  std::string path;
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

// A setting and the names of the mechanisms or scores that read it.
struct SettingReaders {
  std::vector<const char*> scores, mechanisms;

  std::string text() const {
    std::string all;
    if (!scores.empty()) all += fmt::format("model.score {}", fmt::join(scores, " and "));
    if (!all.empty() && !mechanisms.empty()) all += " and ";
    if (!mechanisms.empty())
      all += fmt::format("model.attention {}", fmt::join(mechanisms, " and "));
    return all;
  }
};

// Returns the settings that only some mechanisms and scores read, according to the registry.
std::vector<SettingUse> uses_of_mechanisms(const AttentionConfig& a) {
  std::map<std::string, SettingReaders> readers;
  std::set<std::string> used;
  const auto add = [&](const AttentionInfo& about, std::vector<const char*> SettingReaders::*list,
                       bool chosen) {
    for (const char* key : about.settings) {
      const std::string path = std::string("model.") + key;
      (readers[path].*list).push_back(about.name);
      if (chosen) used.insert(path);
    }
  };
  for (const AttentionInfo& score : attention_scores())
    add(score, &SettingReaders::scores, a.has_score() && a.score_name() == score.name);
  for (const AttentionMechanism& mechanism : attention_mechanisms())
    add(mechanism.about, &SettingReaders::mechanisms, a.kind == mechanism.about.name);
  std::vector<SettingUse> uses;
  for (const auto& [path, who] : readers) uses.push_back({path, used.contains(path), who.text()});
  return uses;
}

// Returns the settings that only some recurrent models read.
std::vector<SettingUse> uses_of_decoder(const RecurrentConfig& c) {
  const bool attends = c.attention.attends();
  return {{"model.decoder", attends, "models with attention"},
          {"model.readout", attends, "models with attention"},
          {"model.input_feeding", attends && c.decoder == DecoderForm::luong,
           "model.decoder luong with attention"}};
}

std::map<std::string, std::string> values_of(TrainOptions options) {
  std::map<std::string, std::string> values;
  for (const auto& [path, value] : Settings(options).values()) values[path] = value;
  return values;
}

}  // namespace

std::vector<std::string> unused_settings(const TrainOptions& options) {
  TrainOptions fresh;
  std::visit([&]<class Own>(const Own&) { fresh.model.network = Own(); },
             options.model.network);  // a network of the same type with the default settings
  fresh.data.task = options.data.task;
  const auto defaults = values_of(fresh), values = values_of(options);
  std::vector<SettingUse> uses = uses_of_vocabulary(options.vocabulary);
  const auto add = [&](const std::vector<SettingUse>& more) {
    uses.insert(uses.end(), more.begin(), more.end());
  };
  if (const auto* own = options.model.as<ReaderConfig>()) add(uses_of_mechanisms(own->attention));
  if (const auto* own = options.model.as<RecurrentConfig>()) {
    add(uses_of_mechanisms(own->attention));
    add(uses_of_decoder(*own));
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

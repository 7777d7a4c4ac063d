#include "serve/translation_warnings.h"

#include "text/readability.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const ReadingWarning& warning, const ServedModel& model) {
  const VocabularyCoverage& coverage = warning.coverage;
  const Vocabulary& vocabulary = model.package().source;
  if (warning.kind == ReadingWarning::Kind::other_language)
    return {{"code", warning.code()},
            {"language", warning.detected.language},
            {"confidence", warning.detected.confidence},
            {"message", describe_language(warning.detected, model.source())}};
  if (warning.kind == ReadingWarning::Kind::not_copied)
    return {{"code", warning.code()},
            {"not_copied", warning.lost},
            {"message", describe_lost(warning, vocabulary)}};
  return {{"code", warning.code()},
          {"unknown", coverage.unknown + coverage.spelt},
          {vocabulary.has_whole_words() ? "words" : "characters", coverage.units},
          {"examples", coverage.examples},
          {"message", describe(warning, vocabulary)}};
}

}  // namespace

Json warnings_of(const ServedModel& model, std::span<const std::string> sentences,
                 std::span<const Translation> translations) {
  std::string beginning;
  for (const std::string& sentence : sentences) {
    if (beginning.size() >= kDetectedBytes) break;
    beginning += sentence + "\n";
  }
  std::vector<std::string> texts;
  for (const Translation& translation : translations) texts.push_back(translation.text);
  const Vocabulary& vocabulary = model.package().source;
  Json list = Json::array();
  for (const auto& some :
       {coverage_warnings(vocabulary, sentences), copy_warnings(vocabulary, sentences, texts),
        language_warnings(beginning, model.source())})
    for (const ReadingWarning& warning : some) list.push_back(as_json(warning, model));
  return list;
}

}  // namespace fovea

#include "serve/translation_answer.h"

#include <set>

#include "http/json_reply.h"
#include "serve/attention_json.h"
#include "text/readability.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

Json warning_json(const ReadingWarning& warning, const ServedModel& model) {
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

// Returns the different alternative translations of a text, without the best one.
Json alternatives_of(const TextDocument& document, std::span<const Translation> translations,
                     int64_t wanted) {
  Json list = Json::array();
  std::set<std::string> seen{document.render(translations, 0)};
  for (int64_t n = 1; n <= wanted; ++n) {
    std::string text = document.render(translations, static_cast<size_t>(n));
    if (seen.insert(text).second) list.push_back(std::move(text));
  }
  return list;
}

Json n_best_of(const TextDocument& document, std::span<const Translation> translations,
               int64_t wanted) {
  Json list = Json::array();
  for (size_t n = 0; n < static_cast<size_t>(wanted); ++n) {
    double log_prob = 0;
    bool more = n == 0;
    for (const Translation& t : translations) {
      if (const Alternative* best = nth_best(t, n)) log_prob += best->log_prob;
      more = more || n < t.n_best.size();
    }
    if (more) list.push_back({{"text", document.render(translations, n)}, {"log_prob", log_prob}});
  }
  return list;
}

// Returns `,"attention":[…]` with an entry per sentence. For a list of texts, there is a list per
// text.
std::string attention_of(const TranslateRequest& request) {
  std::string text = R"(,"attention":[)";
  size_t sentence = 0;
  for (size_t i = 0; i < request.texts.size(); ++i) {
    const size_t end = request.model ? sentence + request.documents[i]->sentences().size() : 0;
    if (request.is_list) text += i == 0 ? "[" : ",[";
    for (const size_t first = sentence; sentence < end; ++sentence)
      text += (sentence == first ? "" : ",") + request.attention[sentence];
    if (request.is_list) text += "]";
  }
  return text + "]";
}

}  // namespace

// The JSON of a sentence is written when the sentence is translated. Writing all of it at the end
// would block a worker thread for long, even if the client has left. Matrices in memory take
// several times as many bytes as their JSON.
bool note_attention(TranslateRequest& request, size_t sentence, const std::string& text,
                    Translation& translation) {
  if (!request.decoding.attention || request.too_large) return true;
  if (request.attention_bytes + bytes_of_maps(translation.attention) <= kMaxAttentionBytes) {
    std::string json = json_text(attention_json(*request.model, text, translation));
    request.attention_bytes += json.size();
    request.attention[sentence] = std::move(json);
  } else {
    request.attention_bytes = kMaxAttentionBytes + 1;
  }
  translation.attention = {};
  translation.tree = {};
  request.too_large = request.attention_bytes > kMaxAttentionBytes;
  return !request.too_large;
}

Json detected_json(const DetectedLanguage& detected) {
  return {{"confidence", detected.confidence}, {"language", detected.language}};
}

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
    for (const ReadingWarning& warning : some) list.push_back(warning_json(warning, model));
  return list;
}

Json all_warnings(const TranslateRequest& request, const TranslationList& all) {
  Json list = Json::array();
  for (size_t i = 0; request.model && i < request.texts.size(); ++i)
    for (Json& warning :
         warnings_of(*request.model, request.documents[i]->sentences(), request.part(all, i))) {
      warning["text"] = i;
      list.push_back(std::move(warning));
    }
  return list;
}

std::string answer_of(const TranslateRequest& request, const TranslationList& all) {
  // Returns a single value for a single text, and a list of values for a list of texts.
  const auto for_text = [&](auto one) -> Json {
    if (!request.is_list) return one(size_t{0});
    Json list = Json::array();
    for (size_t i = 0; i < request.texts.size(); ++i) list.push_back(one(i));
    return list;
  };
  Json reply{
      {"translatedText", for_text([&](size_t i) -> Json { return request.translated(all, i); })}};
  if (request.detected)
    reply["detectedLanguage"] = for_text([&](size_t) { return detected_json(*request.detected); });
  if (request.alternatives > 0)
    reply["alternatives"] = for_text([&](size_t i) {
      return request.html || !request.model
                 ? Json::array()
                 : alternatives_of(*request.documents[i], request.part(all, i),
                                   request.alternatives);
    });
  if (request.n_best > 0)
    reply["n_best"] = for_text([&](size_t i) {
      return request.model ? n_best_of(*request.documents[i], request.part(all, i), request.n_best)
                           : Json::array({{{"text", request.texts[i]}, {"log_prob", 0.0}}});
    });
  if (const Json warnings = all_warnings(request, all); !warnings.empty())
    reply["warnings"] = warnings;
  std::string text = json_text(reply);
  if (request.decoding.attention) text.insert(text.size() - 1, attention_of(request));
  return text;
}

}  // namespace fovea

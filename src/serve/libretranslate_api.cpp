#include <algorithm>
#include <set>

#include "http/http_error.h"
#include "serve/attention_json.h"
#include "serve/service.h"
#include "serve/translation_warnings.h"
#include "text/language.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const DetectedLanguage& detected) {
  return {{"confidence", detected.confidence}, {"language", detected.language}};
}

// A single value for a single text, a list of values for a list of texts.
template <class One>
Json for_each_text(size_t texts, bool is_list, One one) {
  if (!is_list) return one(size_t{0});
  Json list = Json::array();
  for (size_t i = 0; i < texts; ++i) list.push_back(one(i));
  return list;
}

// Distinct alternative translations of a text, without the best one.
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

}  // namespace

// ,"attention":[…]: an entry per sentence; nested lists for a list of texts.
std::string Service::attention_of(const TranslateRequest& request) {
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

// The JSON of a sentence is written when the sentence is translated. Writing all of it at the end
// would block a worker thread for long, even if the client has left. Matrices in memory take
// several times as many bytes as their JSON.
bool Service::note_attention(TranslateRequest& request, const TranslationTask& task,
                             size_t sentence, Translation& translation) {
  if (!request.decoding.attention || request.too_large) return true;
  if (request.attention_bytes + bytes_of_maps(translation.attention) <= kMaxAttentionBytes) {
    std::string json =
        json_reply(attention_json(*request.model, task.sentences[sentence], translation)).body;
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

// The warnings of all texts of a request, each with the index of its text.
Service::Json Service::all_warnings(const TranslateRequest& request, const Translations& all) {
  Json list = Json::array();
  for (size_t i = 0; request.model && i < request.texts.size(); ++i)
    for (Json& warning :
         warnings_of(*request.model, request.documents[i]->sentences(), part(request, all, i))) {
      warning["text"] = i;
      list.push_back(std::move(warning));
    }
  return list;
}

// If source and target are the same, `all` is empty and the texts are returned unchanged.
std::string Service::answer_of(const TranslateRequest& request, const Translations& all) {
  const auto for_text = [&](auto one) {
    return for_each_text(request.texts.size(), request.is_list, one);
  };
  Json reply{{"translatedText", for_text([&](size_t i) -> Json {
                return request.model ? request.documents[i]->render(part(request, all, i), 0)
                                     : request.texts[i];
              })}};
  if (request.detected)
    reply["detectedLanguage"] = for_text([&](size_t) { return as_json(*request.detected); });
  if (request.alternatives > 0)
    reply["alternatives"] = for_text([&](size_t i) {
      return request.html || !request.model
                 ? Json::array()
                 : alternatives_of(*request.documents[i], part(request, all, i),
                                   request.alternatives);
    });
  if (request.n_best > 0)
    reply["n_best"] = for_text([&](size_t i) {
      return request.model ? n_best_of(*request.documents[i], part(request, all, i), request.n_best)
                           : Json::array({{{"text", request.texts[i]}, {"log_prob", 0.0}}});
    });
  if (const Json warnings = all_warnings(request, all); !warnings.empty())
    reply["warnings"] = warnings;
  std::string text = json_reply(reply).body;
  if (request.decoding.attention) text.insert(text.size() - 1, attention_of(request));
  return text;
}

void Service::translate(RequestContext context) {
  const TranslateRequestPtr request = read_translate_request(context, context.parameters());
  if (!request->model) return context.exchange->answer({.body = answer_of(*request, {})});
  submit(context, request, [](const TranslateRequest& done, const Translations& all) {
    return HttpReply{.body = answer_of(done, all)};
  });
}

void Service::detect(RequestContext context) {
  const RequestParameters& parameters = context.parameters();
  const auto text = parameters.text("q");
  if (!text) throw HttpError(400, "Invalid request: missing q parameter");
  check_size({*text});
  const std::vector<DetectedLanguage> found = detect_language(*text);
  Json list = Json::array({as_json(sure_language(found))});
  for (size_t i = 1; i < found.size() && list.size() < 3; ++i)
    if (list[0]["confidence"] > 0 && found[i].confidence > 0) list.push_back(as_json(found[i]));
  context.exchange->answer(json_reply(list));
}

void Service::languages(RequestContext context) {
  Json list = Json::array();
  for (const std::string& code : known_languages(context.models)) {
    std::set<std::string> targets{code};
    for (const auto& model : context.models)
      if (model->source() == code) targets.insert(model->target());
    list.push_back({{"code", code}, {"name", language_name(code)}, {"targets", targets}});
  }
  context.exchange->answer(json_reply(list));
}

void Service::settings(RequestContext context) {
  const std::string target = context.models.front()->target();
  context.exchange->answer(json_reply({
      {"apiKeys", !keys()->empty()},
      {"charLimit", options_.char_limit > 0 ? options_.char_limit : -1},
      {"filesTranslation", options_.files},
      {"frontendTimeout", 500},
      {"keyRequired", options_.keys_required},
      {"language",
       {{"source", {{"code", "auto"}, {"name", "Auto Detect"}}},
        {"target", {{"code", target}, {"name", language_name(target)}}}}},
      {"suggestions", false},
      {"supportedFilesFormat", options_.files ? Json{".txt", ".html", ".htm"} : Json::array()},
  }));
}

void Service::suggest(RequestContext) {
  throw HttpError(403, "Suggestions are disabled on this server.");
}

}  // namespace fovea

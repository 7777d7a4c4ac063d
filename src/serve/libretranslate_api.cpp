#include "serve/libretranslate_api.h"

#include <set>

#include "http/http_error.h"
#include "http/json_reply.h"
#include "serve/translation_answer.h"
#include "text/language.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

void languages(RequestContext& context) {
  Json list = Json::array();
  for (const std::string& code : known_languages(context.models)) {
    std::set<std::string> targets{code};
    for (const auto& model : context.models)
      if (model->source() == code) targets.insert(model->target());
    list.push_back({{"code", code}, {"name", language_name(code)}, {"targets", targets}});
  }
  context.exchange->answer(json_reply(list));
}

void suggest(RequestContext&) { throw HttpError(403, "Suggestions are disabled on this server."); }

}  // namespace

std::vector<Route> LibreTranslateApi::routes() {
  using enum AccessRule;
  using enum AnswerKind;
  return {{"GET", "/languages", open, small, languages},
          {"GET", "/frontend/settings", open, small, [this](auto& context) { settings(context); }},
          {"POST", "/translate", key, computed, [this](auto& context) { translate(context); }},
          {"POST", "/detect", key, small, [this](auto& context) { detect(context); }},
          {"POST", "/suggest", key, small, suggest}};
}

void LibreTranslateApi::translate(RequestContext& context) {
  queue_.submit(context, read_translate_request(context, limits_),
                [](const TranslateRequest& done, const TranslationList& all) {
                  return HttpReply{.body = answer_of(done, all)};
                });
}

void LibreTranslateApi::detect(RequestContext& context) const {
  const std::string text = needed(context.parameters(), "q");
  limits_.check_size({text});
  const std::vector<DetectedLanguage> found = detect_language(text);
  Json list = Json::array({detected_json(sure_language(found))});
  for (size_t i = 1; i < found.size() && list.size() < 3; ++i)
    if (list[0]["confidence"] > 0 && found[i].confidence > 0)
      list.push_back(detected_json(found[i]));
  context.exchange->answer(json_reply(list));
}

void LibreTranslateApi::settings(RequestContext& context) const {
  const std::string target = context.models.front()->target();
  context.exchange->answer(json_reply({
      {"apiKeys", access_.has_keys()},
      {"charLimit", limits_.char_limit > 0 ? limits_.char_limit : -1},
      {"filesTranslation", files_},
      {"frontendTimeout", 500},
      {"keyRequired", access_.keys_required()},
      {"language",
       {{"source", {{"code", "auto"}, {"name", "Auto Detect"}}},
        {"target", {{"code", target}, {"name", language_name(target)}}}}},
      {"suggestions", false},
      {"supportedFilesFormat", files_ ? Json{".txt", ".html", ".htm"} : Json::array()},
  }));
}

}  // namespace fovea

#include "serve/deepl_api.h"

#include <set>

#include "base/utf8.h"
#include "http/http_error.h"
#include "http/json_reply.h"
#include "serve/translation_answer.h"
#include "text/language.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostTexts = 50;

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - ('a' - 'A'));
  return text;
}

void languages(RequestContext& context) {
  const bool targets = context.parameters().text("type").value_or("source") == "target";
  std::set<std::string> codes;
  for (const auto& model : context.models)
    codes.insert(targets ? model->target() : model->source());
  Json list = Json::array();
  for (const std::string& code : codes)
    list.push_back({{"language", upper(code)}, {"name", language_name(code)}});
  context.exchange->answer(json_reply(list));
}

}  // namespace

std::vector<Route> DeepLApi::routes() {
  using enum AccessRule;
  using enum AnswerKind;
  return {{"POST", "/v2/translate", key, computed, [this](auto& context) { translate(context); }},
          {"GET", "/v2/languages", key, small, languages}};
}

void DeepLApi::translate(RequestContext& context) {
  const RequestParameters& parameters = context.parameters();
  const auto texts = parameters.texts("text");
  if (!texts) throw HttpError(400, "Parameter 'text' not specified.");
  if (texts->values.size() > kMostTexts) throw HttpError(413, "At most 50 texts are allowed.");
  const auto target = parameters.text("target_lang");
  if (!target) throw HttpError(400, "Parameter 'target_lang' not specified.");
  const std::string tags = parameters.text("tag_handling").value_or("");
  if (!tags.empty() && tags != "html" && tags != "xml")
    throw HttpError(400, "Value for 'tag_handling' not supported.");
  const TranslateRequestPtr request = new_request(texts->values, limits_);
  request->html = !tags.empty();
  const std::string source = parameters.text("source_lang").value_or("auto");
  request->choose_languages(context.models, source, *target, "");
  request->use_defaults(limits_);
  const bool bills = parameters.flag("show_billed_characters");  // DeepL's own clients set it
  const auto reply = [bills](const TranslateRequest& done, const TranslationList& all) {
    Json list = Json::array();
    for (size_t i = 0; i < done.texts.size(); ++i) {
      Json one{{"detected_source_language", upper(done.source)}, {"text", done.translated(all, i)}};
      Json warnings =
          done.model ? warnings_of(*done.model, done.documents[i]->sentences(), done.part(all, i))
                     : Json();
      if (!warnings.empty()) one["warnings"] = std::move(warnings);
      if (bills) one["billed_characters"] = count_code_points(done.texts[i]);
      list.push_back(std::move(one));
    }
    return json_reply({{"translations", std::move(list)}});
  };
  queue_.submit(context, request, reply);
}

}  // namespace fovea

#include <algorithm>

#include "base/utf8.h"
#include "serve/refusal.h"
#include "serve/service.h"
#include "serve/warnings.h"
#include "text/language.h"

// DeepL's API as far as texts go, so that programs made for it can be pointed here.
namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostTexts = 50;

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - ('a' - 'A'));
  return text;
}

}  // namespace

void Service::deepl_translate(Call call) {
  const Parameters& parameters = call.parameters();
  const auto texts = parameters.texts("text");
  if (!texts) throw Refusal(400, "Parameter 'text' not specified.");
  if (texts->values.size() > kMostTexts) throw Refusal(413, "At most 50 texts are allowed.");
  const auto target = parameters.text("target_lang");
  if (!target) throw Refusal(400, "Parameter 'target_lang' not specified.");
  auto order = std::make_shared<Order>();
  order->texts = texts->values;
  order->is_list = true;
  const std::string tags = parameters.text("tag_handling").value_or("");
  if (!tags.empty() && tags != "html" && tags != "xml")
    throw Refusal(400, "Value for 'tag_handling' not supported.");
  order->html = !tags.empty();
  order->wish = options_.wish;
  order->wish.alignment = order->html;
  check_size(order->texts);
  const auto source = parameters.text("source_lang");
  choose_languages(*order, call.engines, source ? *source : "auto", *target, "");
  const bool bills = parameters.flag("show_billed_characters");  // DeepL's own clients ask for it
  const auto reply = [bills](const Order& done, const Translations& all) {
    Json list = Json::array();
    for (size_t i = 0; i < done.texts.size(); ++i) {
      Json one{
          {"detected_source_language", upper(done.source)},
          {"text", done.engine ? done.passages[i]->render(part(done, all, i), 0) : done.texts[i]}};
      if (done.engine)
        if (Json warnings = warnings_of(*done.engine, done.passages[i]->sentences());
            !warnings.empty())
          one["warnings"] = std::move(warnings);
      if (bills) one["billed_characters"] = count_code_points(done.texts[i]);
      list.push_back(std::move(one));
    }
    return json_reply({{"translations", std::move(list)}});
  };
  if (!order->engine) return call.exchange->answer(reply(*order, {}));
  submit(call, order, reply);
}

void Service::deepl_languages(Call call) {
  const bool targets = call.parameters().text("type").value_or("source") == "target";
  Json list = Json::array();
  for (const std::string& code : known_languages(call.engines)) {
    const bool serves = std::ranges::any_of(call.engines, [&](const auto& engine) {
      return (targets ? engine->target() : engine->source()) == code;
    });
    if (serves) list.push_back({{"language", upper(code)}, {"name", language_name(code)}});
  }
  call.exchange->answer(json_reply(list));
}

}  // namespace fovea

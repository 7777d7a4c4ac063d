#include <algorithm>
#include <set>

#include "serve/attention_json.h"
#include "serve/language.h"
#include "serve/refusal.h"
#include "serve/service.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const Detected& detected) {
  return {{"confidence", detected.confidence}, {"language", detected.language}};
}

// One value for a single text, a list for a list of them.
template <class One>
Json for_each_text(size_t texts, bool is_list, One one) {
  if (!is_list) return one(size_t{0});
  Json list = Json::array();
  for (size_t i = 0; i < texts; ++i) list.push_back(one(i));
  return list;
}

// Other translations of a text, each once, without the best.
Json alternatives_of(const Passage& passage, std::span<const Translation> translations,
                     int64_t wanted) {
  Json list = Json::array();
  std::set<std::string> seen{passage.render(translations, 0)};
  for (int64_t n = 1; n <= wanted; ++n) {
    std::string text = passage.render(translations, static_cast<size_t>(n));
    if (seen.insert(text).second) list.push_back(std::move(text));
  }
  return list;
}

Json n_best_of(const Passage& passage, std::span<const Translation> translations, int64_t wanted) {
  Json list = Json::array();
  for (size_t n = 0; n < static_cast<size_t>(wanted); ++n) {
    double log_prob = 0;
    bool more = n == 0;
    for (const Translation& t : translations) {
      if (const Alternative* best = nth_best(t, n)) log_prob += best->log_prob;
      more = more || n < t.n_best.size();
    }
    if (more) list.push_back({{"text", passage.render(translations, n)}, {"log_prob", log_prob}});
  }
  return list;
}

}  // namespace

// Where the text is in the language it is wanted in, there are no translations.
Service::Json Service::answer_of(const Order& order, const Translations& all) {
  const auto each = [&](auto one) {
    return for_each_text(order.texts.size(), order.is_list, [&](size_t i) -> Json {
      return one(*order.passages[i], part(order, all, i));
    });
  };
  const auto same = [&](size_t i) { return Json(order.texts[i]); };
  using Found = std::span<const Translation>;
  Json reply{{"translatedText",
              !order.engine ? for_each_text(order.texts.size(), order.is_list, same)
                            : each([](const Passage& p, Found t) { return p.render(t, 0); })}};
  if (order.detected)
    reply["detectedLanguage"] = for_each_text(order.texts.size(), order.is_list,
                                              [&](size_t) { return as_json(*order.detected); });
  if (!order.engine) return reply;
  if (order.alternatives > 0)
    reply["alternatives"] = each([&](const Passage& p, Found t) {
      return order.html ? Json::array() : alternatives_of(p, t, order.alternatives);
    });
  if (order.n_best)
    reply["n_best"] =
        each([&](const Passage& p, Found t) { return n_best_of(p, t, order.wish.n_best); });
  if (order.wish.attention)
    reply["attention"] = each([&](const Passage& p, Found t) {
      Json list = Json::array();
      for (size_t i = 0; i < t.size(); ++i)
        list.push_back(attention_json(*order.engine, p.sentences()[i], t[i]));
      return list;
    });
  return reply;
}

void Service::translate(Call call) {
  const Orders order = read_order(call, call.parameters());
  if (!order->engine) return call.exchange->answer(json_reply(answer_of(*order, {})));
  submit(call, order, [](const Order& done, const Translations& all) {
    return json_reply(answer_of(done, all));
  });
}

void Service::detect(Call call) {
  const Parameters& parameters = call.parameters();
  const auto text = parameters.text("q");
  if (!text) throw Refusal(400, "Invalid request: missing q parameter");
  check_size({*text});
  Json list = Json::array();
  for (const Detected& d : detect_language(*text))
    if (list.size() < 3 && (d.confidence > 0 || list.empty())) list.push_back(as_json(d));
  if (list.empty()) list.push_back(as_json({"en", 0.0}));
  call.exchange->answer(json_reply(list));
}

void Service::languages(Call call) {
  Json list = Json::array();
  for (const std::string& code : known_languages(call.engines)) {
    std::set<std::string> targets{code};
    for (const auto& engine : call.engines)
      if (engine->source() == code) targets.insert(engine->target());
    list.push_back({{"code", code}, {"name", language_name(code)}, {"targets", targets}});
  }
  call.exchange->answer(json_reply(list));
}

void Service::settings(Call call) {
  const std::string target = call.engines.front()->target();
  call.exchange->answer(json_reply({
      {"apiKeys", !options_.keys.empty()},
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

void Service::suggest(Call) { throw Refusal(403, "Suggestions are disabled on this server."); }

}  // namespace fovea

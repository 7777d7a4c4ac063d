#include <algorithm>
#include <set>

#include "serve/attention_json.h"
#include "serve/refusal.h"
#include "serve/service.h"
#include "serve/warnings.h"
#include "text/language.h"

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

// ,"attention":[…]: of each sentence; in lists for a list of texts.
std::string Service::attention_of(const Order& order) {
  std::string text = R"(,"attention":[)";
  size_t sentence = 0;
  for (size_t i = 0; i < order.texts.size(); ++i) {
    const size_t end = order.engine ? sentence + order.passages[i]->sentences().size() : 0;
    if (order.is_list) text += i == 0 ? "[" : ",[";
    for (const size_t first = sentence; sentence < end; ++sentence)
      text += (sentence == first ? "" : ",") + order.attention[sentence];
    if (order.is_list) text += "]";
  }
  return text + "]";
}

// The attention of a sentence is written when it is translated. Writing all of it at the end would
// keep a thread busy that others wait for, even if the client has left. Maps in memory take several
// times the space of their JSON.
bool Service::note_attention(Order& order, const Task& task, size_t sentence,
                             Translation& translation) {
  if (!order.wish.attention || order.too_large) return true;
  if (order.attention_bytes + bytes_of_maps(translation.attention) <= kMaxAttentionBytes) {
    std::string json =
        json_reply(attention_json(*order.engine, task.sentences[sentence], translation)).body;
    order.attention_bytes += json.size();
    order.attention[sentence] = std::move(json);
  } else {
    order.attention_bytes = kMaxAttentionBytes + 1;
  }
  translation.attention = {};
  translation.tree = {};
  order.too_large = order.attention_bytes > kMaxAttentionBytes;
  return !order.too_large;
}

// Of all texts of an order; each says which text it is about.
Service::Json Service::all_warnings(const Order& order) {
  Json list = Json::array();
  for (size_t i = 0; order.engine && i < order.texts.size(); ++i)
    for (Json& warning : warnings_of(*order.engine, order.passages[i]->sentences())) {
      warning["text"] = i;
      list.push_back(std::move(warning));
    }
  return list;
}

// Where the text is in the language it is wanted in, there are no translations.
std::string Service::answer_of(const Order& order, const Translations& all) {
  const auto for_text = [&](auto one) {
    return for_each_text(order.texts.size(), order.is_list, one);
  };
  Json reply{{"translatedText", for_text([&](size_t i) -> Json {
                return order.engine ? order.passages[i]->render(part(order, all, i), 0)
                                    : order.texts[i];
              })}};
  if (order.detected)
    reply["detectedLanguage"] = for_text([&](size_t) { return as_json(*order.detected); });
  if (order.alternatives > 0)
    reply["alternatives"] = for_text([&](size_t i) {
      return order.html || !order.engine
                 ? Json::array()
                 : alternatives_of(*order.passages[i], part(order, all, i), order.alternatives);
    });
  if (order.n_best > 0)
    reply["n_best"] = for_text([&](size_t i) {
      return order.engine ? n_best_of(*order.passages[i], part(order, all, i), order.n_best)
                          : Json::array({{{"text", order.texts[i]}, {"log_prob", 0.0}}});
    });
  if (const Json warnings = all_warnings(order); !warnings.empty()) reply["warnings"] = warnings;
  std::string text = json_reply(reply).body;
  if (order.wish.attention) text.insert(text.size() - 1, attention_of(order));
  return text;
}

void Service::translate(Call call) {
  const Orders order = read_order(call, call.parameters());
  if (!order->engine) return call.exchange->answer({.body = answer_of(*order, {})});
  submit(call, order, [](const Order& done, const Translations& all) {
    return Reply{.body = answer_of(done, all)};
  });
}

void Service::detect(Call call) {
  const Parameters& parameters = call.parameters();
  const auto text = parameters.text("q");
  if (!text) throw Refusal(400, "Invalid request: missing q parameter");
  check_size({*text});
  const std::vector<Detected> found = detect_language(*text);
  Json list = Json::array({as_json(sure_language(found))});
  for (size_t i = 1; i < found.size() && list.size() < 3; ++i)
    if (list[0]["confidence"] > 0 && found[i].confidence > 0) list.push_back(as_json(found[i]));
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

void Service::suggest(Call) { throw Refusal(403, "Suggestions are disabled on this server."); }

}  // namespace fovea

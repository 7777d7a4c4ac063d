#include <utility>

#include "serve/service.h"

// Sentences as they are translated, as server-sent events.
namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

std::string event(const char* name, const Json& data) {
  return std::string("event: ") + name +
         "\ndata: " + data.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n\n";
}

}  // namespace

void Service::stream(Call call) {
  const Parameters& parameters = call.parameters();
  const Orders order = read_order(call, parameters);
  const auto exchange = call.exchange;
  // The head goes with the first event, so that a refusal can still be one. All of this runs on
  // the thread of the batcher.
  const auto send = [exchange, begun = std::make_shared<bool>(false)](const char* name,
                                                                      const Json& data) {
    if (!std::exchange(*begun, true))
      exchange->begin(
          {.type = "text/event-stream; charset=utf-8", .headers = {{"X-Accel-Buffering", "no"}}});
    exchange->send(event(name, data));
  };
  if (!order->engine) {
    send("done", {{"translatedText", order->is_list ? Json(order->texts) : Json(order->texts[0])}});
    return exchange->end();
  }
  const auto task = task_for(order, exchange);
  task->each = [send, order](size_t sentence, const Translation& translation) {
    size_t text = 0, number = sentence;
    while (number >= order->passages[text]->sentences().size())
      number -= order->passages[text++]->sentences().size();
    const Alternative* best = nth_best(translation, 0);
    send("sentence", {{"text", text},
                      {"sentence", number},
                      {"source", order->passages[text]->sentences()[number]},
                      {"translatedText", translation.text},
                      {"score", best ? best->score : 0}});
  };
  task->finish = [this, order, send, exchange](Outcome outcome, Translations translations) {
    if (outcome == Outcome::done) {
      count(translations);
      Json texts = Json::array();
      for (size_t i = 0; i < order->texts.size(); ++i)
        texts.push_back(order->passages[i]->render(part(*order, translations, i), 0));
      send("done", {{"translatedText", order->is_list ? texts : texts.front()}});
    } else {
      const bool late = outcome == Outcome::late;
      send("error", {{"error", late ? "The translation took too long" : "Cannot translate text"}});
    }
    exchange->end();
  };
  enqueue(task);
}

}  // namespace fovea

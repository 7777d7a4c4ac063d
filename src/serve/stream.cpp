#include <utility>

#include "serve/attention_json.h"
#include "serve/service.h"

// Words and sentences as they are translated, as server-sent events.
namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

std::string event(const char* name, const std::string& data) {
  return std::string("event: ") + name + "\ndata: " + data + "\n\n";
}

}  // namespace

void Service::stream(Call call) {
  const Orders order = read_order(call, call.parameters());
  const auto exchange = call.exchange;
  // The head goes with the first event, so that a refusal can still be one. All of this runs on
  // the threads of the batcher, one at a time.
  const auto send_text = [exchange, begun = std::make_shared<bool>(false)](
                             const char* name, const std::string& data) {
    if (!std::exchange(*begun, true))
      exchange->begin(
          {.type = "text/event-stream; charset=utf-8", .headers = {{"X-Accel-Buffering", "no"}}});
    exchange->send(event(name, data));
  };
  const auto send = [send_text](const char* name, const Json& data) {
    send_text(name, json_reply(data).body);
  };
  if (!order->engine) {
    send_text("done", answer_of(*order, {}));
    return exchange->end();
  }
  const auto task = task_for(call, order);
  // The sentence of an event: its text, its number in it, and the text before its translation.
  const auto place_of = [order](size_t sentence) -> Json {
    size_t text = 0;
    while (sentence >= order->passages[text]->sentences().size())
      sentence -= order->passages[text++]->sentences().size();
    const std::string before = order->passages[text]->before(sentence);
    return {{"text", text}, {"sentence", sentence}, {"before", before}};
  };
  task->grown = [send, place_of](size_t sentence, const std::string& more) {
    Json data = place_of(sentence);
    data["added"] = more;
    send("words", data);
  };
  task->each = [order, send, place_of, exchange, task = task.get()](size_t sentence,
                                                                    Translation& found) {
    if (!note_attention(*order, *task, sentence, found)) {
      send("error", {{"error", attention_too_large()}});
      return exchange->end();
    }
    const Alternative* best = nth_best(found, 0);
    Json data = place_of(sentence);
    data["source"] = task->sentences[sentence];
    data["translatedText"] = found.text;
    data["score"] = best ? best->score : 0;
    send("sentence", data);
  };
  task->finish = [this, order, send, send_text, exchange](Outcome outcome,
                                                          const Translations& translations) {
    if (order->too_large) return;
    if (outcome == Outcome::done) {
      count(translations);
      send_text("done", answer_of(*order, translations));
    } else {
      const bool late = outcome == Outcome::late;
      send("error", {{"error", late ? "The translation took too long" : "Cannot translate text"}});
    }
    exchange->end();
  };
  enqueue(task);
}

}  // namespace fovea

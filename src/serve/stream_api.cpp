#include "serve/stream_api.h"

#include <fmt/format.h>

#include <utility>

#include "http/json_reply.h"
#include "serve/attention_json.h"
#include "serve/translation_answer.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

using Documents = std::vector<std::unique_ptr<TextDocument>>;

// Returns the position of a sentence: the index of its text, its own index in that text, and the
// text before its translation.
Json position_of(const Documents& documents, size_t sentence) {
  size_t text = 0;
  while (sentence >= documents[text]->sentences().size())
    sentence -= documents[text++]->sentences().size();
  const std::string before = documents[text]->before(sentence);
  return {{"text", text}, {"sentence", sentence}, {"before", before}};
}

}  // namespace

std::vector<Route> StreamApi::routes() {
  return {{"POST", "/v1/translate/stream", AccessRule::key, AnswerKind::events,
           [this](auto& context) { stream(context); }}};
}

void StreamApi::stream(RequestContext& context) {
  const TranslateRequestPtr request = read_translate_request(context, limits_);
  const auto exchange = context.exchange;
  // Sends text to the client. The header is sent with the first event, so that an error before it
  // can still have an HTTP status. Worker threads call this, one at a time.
  const auto send_text = [exchange, begun = std::make_shared<bool>(false)](
                             const char* name, const std::string& data) {
    if (!std::exchange(*begun, true))
      exchange->begin(
          {.type = "text/event-stream; charset=utf-8", .headers = {{"X-Accel-Buffering", "no"}}});
    exchange->send(fmt::format("event: {}\ndata: {}\n\n", name, data));
  };
  const auto send = [send_text](const char* name, const Json& data) {
    send_text(name, json_text(data));
  };
  if (!request->model) {
    send_text("done", answer_of(*request, {}));
    return exchange->end();
  }
  const auto task = queue_.task_for(context, request);
  task->on_prefix = [request, send](size_t sentence, const std::string& more) {
    Json data = position_of(request->documents, sentence);
    data["added"] = more;
    send("words", data);
  };
  task->on_sentence = [request, send, exchange, task = task.get()](size_t sentence,
                                                                   Translation& found) {
    if (!note_attention(*request, sentence, task->sentences[sentence], found)) {
      send("error", {{"error", attention_too_large()}});
      return exchange->end();
    }
    const Alternative* best = nth_best(found, 0);
    Json data = position_of(request->documents, sentence);
    data["source"] = task->sentences[sentence];
    data["translatedText"] = found.text;
    data["score"] = best ? best->score : 0;
    send("sentence", data);
  };
  task->finish = [this, request, send, send_text, exchange](TaskOutcome outcome,
                                                            const TranslationList& translations) {
    if (request->too_large) return;
    if (outcome == TaskOutcome::done) {
      queue_.count(translations);
      send_text("done", answer_of(*request, translations));
    } else {
      const bool late = outcome == TaskOutcome::late;
      send("error", {{"error", late ? "The translation took too long" : "Cannot translate text"}});
    }
    exchange->end();
  };
  queue_.add(task);
}

}  // namespace fovea

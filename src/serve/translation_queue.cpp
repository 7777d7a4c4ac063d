#include "serve/translation_queue.h"

#include <fmt/format.h>

#include "base/check.h"
#include "http/http_error.h"
#include "http/json_reply.h"
#include "serve/attention_json.h"
#include "serve/intervention_fields.h"
#include "serve/translation_answer.h"

namespace fovea {
namespace {

[[noreturn]] void refuse_busy() {
  throw HttpError(429, "Slowdown: too many requests are waiting", {{"Retry-After", "1"}});
}

// Answers a client whose task ended; a client that left gets no answer.
void answer(HttpExchange& exchange, TaskOutcome outcome, const std::function<HttpReply()>& make) {
  if (outcome == TaskOutcome::failed) exchange.answer(error_reply(500, "Cannot translate text"));
  if (outcome == TaskOutcome::late)
    exchange.answer(error_reply(504, "The translation took too long"));
  if (outcome != TaskOutcome::done) return;
  try {
    exchange.answer(make());
  } catch (const HttpError& error) {
    exchange.answer(error_reply(error.status(), error.text()));
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    exchange.answer(error_reply(400, error.what()));
  }
}

// Parses the intervention of a request. The worker thread calls it before the translation, because
// it may have to load the model. Returns false if it has answered the client with an error.
bool read_intervention(TranslateRequest& request, TranslationTask& task, HttpExchange& exchange) {
  try {
    read_what_if(*request.intervention, *request.model, task.sentences.front(), request.decoding);
  } catch (const HttpError& error) {
    exchange.answer(error_reply(error.status(), error.text()));
    return false;
  }
  task.decoding = request.decoding;
  return true;
}

// Splits the texts of a request into the sentences of its task.
void split_texts(TranslateRequest& request, TranslationTask& task) {
  const PassageOptions options = request.document_options();
  for (const std::string& text : request.texts) {
    request.documents.push_back(request.html ? html_document(text, options)
                                             : plain_document(text, options));
    const auto& sentences = request.documents.back()->sentences();
    task.sentences.insert(task.sentences.end(), sentences.begin(), sentences.end());
  }
  request.attention.resize(request.decoding.attention ? task.sentences.size() : 0);
  if (!request.only) return;
  if (*request.only >= task.sentences.size())
    throw HttpError(400, fmt::format("Invalid request: sentence {} does not exist; the text has "
                                     "{}, counted from 0",
                                     *request.only, task.sentences.size()));
  task.sentences = {task.sentences[*request.only]};
}

}  // namespace

std::shared_ptr<TranslationTask> TranslationQueue::new_task(const RequestContext& context,
                                                            int64_t cost) const {
  auto task = std::make_shared<TranslationTask>();
  task->client = context.client;
  task->alone = cost > 0;
  task->cost = cost;
  task->deadline = TranslationTask::Clock::now() + timeout_;
  task->abandoned = [exchange = context.exchange] { return exchange->gone(); };
  return task;
}

std::shared_ptr<TranslationTask> TranslationQueue::task_for(
    const RequestContext& context, const TranslateRequestPtr& request) const {
  const auto exchange = context.exchange;
  request->decoding.alignment = request->html;  // elements follow the aligned words
  const int64_t own_cost = request->alone() ? kAloneCost : 0;
  int64_t cost = own_cost;
  // A refusal must be cheap: it is decided before texts are split into sentences.
  for (const std::string& text : request->texts)
    cost += translation_cost(estimated_tokens(text), request->decoding);
  if (!batcher_.would_accept(context.client, cost)) refuse_busy();
  auto task = new_task(context, own_cost);
  task->model = request->model;
  exchange->set_model(request->model->name());
  task->decoding = request->decoding;
  if (request->intervention)
    task->prepare = [request, exchange](TranslationTask& own) {
      return read_intervention(*request, own, *exchange);
    };
  task->abandoned = [exchange, request] { return exchange->gone() || request->too_large; };
  split_texts(*request, *task);
  if (request->decoding.attention)
    task->on_sentence = [request, exchange, own = task.get()](size_t sentence, Translation& found) {
      if (!note_attention(*request, sentence, own->sentences[sentence], found))
        exchange->answer(error_reply(400, attention_too_large()));
    };
  return task;
}

void TranslationQueue::count(const TranslationList& translations) {
  int64_t source = 0, target = 0;
  for (const Translation& t : translations) {
    source += std::ssize(t.source_ids);
    if (!t.n_best.empty()) target += std::ssize(t.n_best.front().ids);
  }
  metrics_.add_tokens(source, target);
}

void TranslationQueue::add(std::shared_ptr<TranslationTask> task) {
  if (!batcher_.add(std::move(task))) refuse_busy();
}

void TranslationQueue::submit(const RequestContext& context, TranslateRequestPtr request,
                              Render render) {
  const auto exchange = context.exchange;
  if (!request->model) return exchange->answer(render(*request, {}));
  const auto task = task_for(context, request);
  task->finish = [this, exchange, request, render = std::move(render)](
                     TaskOutcome outcome, TranslationList translations) {
    if (outcome == TaskOutcome::done) count(translations);
    answer(*exchange, outcome, [&] { return render(*request, translations); });
  };
  add(task);
}

void TranslationQueue::compute(const RequestContext& context, int64_t cost,
                               std::function<HttpReply()> make) {
  const auto task = new_task(context, cost);
  task->finish = [exchange = context.exchange, make = std::move(make)](TaskOutcome outcome,
                                                                       const TranslationList&) {
    answer(*exchange, outcome, make);
  };
  add(task);
}

}  // namespace fovea

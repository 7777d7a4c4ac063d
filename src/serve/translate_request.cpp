#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "document/markup.h"
#include "http/http_error.h"
#include "serve/attention_json.h"
#include "serve/intervention_fields.h"
#include "serve/service.h"
#include "serve/source_language.h"
#include "text/language.h"

namespace fovea {
namespace {

std::string needed(const RequestParameters& parameters, const char* name) {
  auto text = parameters.text(name);
  if (!text) throw HttpError(400, fmt::format("Invalid request: missing {} parameter", name));
  return *text;
}

[[noreturn]] void refuse_language(const std::string& code) {
  throw HttpError(400, fmt::format("{} is not supported", code));
}

[[noreturn]] void refuse_busy() {
  throw HttpError(429, "Slowdown: too many requests are waiting", {{"Retry-After", "1"}});
}

// Answers a client whose task was not done; a client that left gets no answer. Returns whether the
// task was not done.
bool report_failure(HttpExchange& exchange, TaskOutcome outcome) {
  if (outcome == TaskOutcome::failed) exchange.answer(error_reply(500, "Cannot translate text"));
  if (outcome == TaskOutcome::late)
    exchange.answer(error_reply(504, "The translation took too long"));
  return outcome != TaskOutcome::done;
}

// The beginning of the texts, from which their language is detected.
std::string beginning_of(const std::vector<std::string>& texts, bool html) {
  std::string beginning;
  for (const std::string& text : texts) {
    if (beginning.size() >= kDetectedBytes) break;
    beginning += (html ? text_of_markup(text) : text.substr(0, kDetectedBytes)) + "\n";
  }
  return beginning;
}

int64_t characters_of(const std::vector<std::string>& texts) {
  int64_t characters = 0;
  for (const std::string& text : texts) characters += count_code_points(text);
  return characters;
}

// The JSON of the attention takes hundreds of times as many bytes as the text.
void check_size_with_attention(const std::vector<std::string>& texts) {
  constexpr int64_t kMost = 10'000;
  const int64_t characters = characters_of(texts);
  if (characters > kMost)
    throw HttpError(400, fmt::format("Invalid request: attention is available for at most {} "
                                     "characters in total, this request has {}",
                                     kMost, characters));
}

}  // namespace

void Service::check_size(const std::vector<std::string>& texts) const {
  const auto refuse = [](int64_t size, int64_t limit) {
    throw HttpError(
        400, fmt::format("Invalid request: request ({}) exceeds text limit ({})", size, limit));
  };
  if (std::ssize(texts) > options_.text_limit) refuse(std::ssize(texts), options_.text_limit);
  const int64_t characters = characters_of(texts);
  if (options_.char_limit > 0 && characters > options_.char_limit)
    refuse(characters, options_.char_limit);
}

// Sets the languages and the model of a request. If source and target are the same, it needs no
// model.
void Service::choose_languages(TranslateRequest& request, const ServedModels& models,
                               const std::string& source, const std::string& target,
                               const std::string& model_name) const {
  const std::vector<std::string> known = known_languages(models);
  const auto is_known = [&](const std::string& code) {
    return std::ranges::find(known, code) != known.end();
  };
  request.source = canonical_code(source);
  request.target = canonical_code(target);
  if (source == "auto") {
    request.detected =
        source_language(beginning_of(request.texts, request.html), models, request.target);
    request.source = request.detected->language;
  }
  if (!is_known(request.source)) refuse_language(source == "auto" ? request.source : source);
  if (!is_known(request.target)) refuse_language(target);
  for (const auto& model : models) {
    const bool fits = model->source() == request.source && model->target() == request.target;
    if (fits && (model_name.empty() || model->name() == model_name)) {
      request.model = model;
      return;
    }
  }
  if (request.source == request.target && model_name.empty()) return;
  if (!model_name.empty())
    throw HttpError(400, fmt::format("Invalid request: there is no model {} from {} to {}",
                                     model_name, request.source, request.target));
  throw HttpError(400, fmt::format("{} ({}) is not available as a target language from {} ({})",
                                   language_name(request.target), request.target,
                                   language_name(request.source), request.source));
}

std::shared_ptr<const ServedModel> Service::model_of(const RequestContext& context,
                                                     const RequestParameters& parameters) const {
  TranslateRequest request;
  choose_languages(request, context.models, needed(parameters, "source"),
                   needed(parameters, "target"), parameters.text("model").value_or(""));
  if (!request.model) throw HttpError(400, "Invalid request: source and target are the same");
  return request.model;
}

// The maximum length of sentences counts pieces if the model is loaded, otherwise only bytes.
PassageOptions Service::document_options(const TranslateRequest& request) {
  SentenceLimit limit;
  if (request.model && request.model->loaded()) {
    const ModelBundle& package = request.model->package();
    limit = {&package.source, static_cast<size_t>(package.model->max_length() - 1)};
  }
  return {request.source, request.target, limit};
}

// Checks a request with an intervention.
void Service::check_one_sentence(const TranslateRequest& request) {
  if (request.texts.size() == 1 && !request.html &&
      plain_document(request.texts.front(), document_options(request))->sentences().size() == 1)
    return;
  throw HttpError(
      400,
      "Invalid request: prefix, mask_words, mask_heads and force_attention require q to be one "
      "sentence and format to be text");
}

Service::TranslateRequestPtr Service::read_translate_request(
    const RequestContext& context, const RequestParameters& parameters) const {
  auto request = std::make_shared<TranslateRequest>();
  const auto texts = parameters.texts("q");
  if (!texts) throw HttpError(400, "Invalid request: missing q parameter");
  const std::string source = needed(parameters, "source"), target = needed(parameters, "target");
  request->texts = texts->values;
  request->is_list = texts->is_list;
  check_size(request->texts);
  const std::string format = parameters.text("format").value_or("text");
  if (format != "text" && format != "html")
    throw HttpError(400, fmt::format("{} format is not supported", format));
  request->html = format == "html";
  DecodeOptions& decoding = request->decoding = options_.decoding;
  const double most = static_cast<double>(options_.most_alternatives);
  request->alternatives = parameters.integer("alternatives", {0, most}).value_or(0);
  const auto n_best = parameters.integer("n_best", {1, most + 1});
  decoding.beam = parameters.integer("beam_size", {1, 16}).value_or(decoding.beam);
  decoding.length_penalty =
      parameters.number("length_penalty", {-10, 10}).value_or(decoding.length_penalty);
  request->n_best = n_best.value_or(0);
  decoding.n_best = std::max(n_best.value_or(1), request->html ? 1 : request->alternatives + 1);
  decoding.beam = std::max(decoding.beam, decoding.n_best);
  decoding.attention = parameters.flag("attention");
  if (decoding.attention) check_size_with_attention(request->texts);
  decoding.alignment = request->html;
  choose_languages(*request, context.models, source, target, parameters.text("model").value_or(""));
  if (request->model && asks_what_if(parameters)) {
    check_one_sentence(*request);
    request->alone = true;
    request->intervention = context.parsed;
  }
  return request;
}

// Parses the intervention of a request. The worker thread calls it before the translation, because
// it may have to load the model. False if it has answered the client with an error.
bool Service::read_intervention(TranslateRequest& request, TranslationTask& task,
                                HttpExchange& exchange) {
  try {
    read_what_if(*request.intervention, *request.model, task.sentences.front(), request.decoding);
  } catch (const HttpError& error) {
    exchange.answer(error_reply(error.status(), error.text()));
    return false;
  }
  task.decoding = request.decoding;
  return true;
}

std::span<const Translation> Service::part(const TranslateRequest& request, const Translations& all,
                                           size_t text) {
  size_t first = 0;
  for (size_t i = 0; i < text; ++i) first += request.documents[i]->sentences().size();
  return std::span(all).subspan(first, request.documents[text]->sentences().size());
}

std::shared_ptr<TranslationTask> Service::task_for(const RequestContext& context,
                                                   const TranslateRequestPtr& request) const {
  const auto exchange = context.exchange;
  int64_t cost = request->alone ? kAloneCost : 0;
  // A refusal must be cheap: it is decided before texts are split into sentences.
  for (const std::string& text : request->texts)
    cost += translation_cost(estimated_tokens(text), request->decoding);
  if (!batcher_.would_accept(context.client, cost)) refuse_busy();
  auto task = std::make_shared<TranslationTask>();
  task->client = context.client;
  task->model = request->model;
  exchange->set_model(request->model->name());
  task->decoding = request->decoding;
  task->alone = request->alone;
  task->cost = request->alone ? kAloneCost : 0;
  if (request->intervention)
    task->prepare = [request, exchange](TranslationTask& own) {
      return read_intervention(*request, own, *exchange);
    };
  task->deadline = TranslationTask::Clock::now() + options_.timeout;
  task->abandoned = [exchange, request] { return exchange->gone() || request->too_large; };
  const PassageOptions documents = document_options(*request);
  for (const std::string& text : request->texts) {
    request->documents.push_back(request->html ? html_document(text, documents)
                                               : plain_document(text, documents));
    const auto& sentences = request->documents.back()->sentences();
    task->sentences.insert(task->sentences.end(), sentences.begin(), sentences.end());
  }
  if (request->decoding.attention) {
    request->attention.resize(task->sentences.size());
    task->on_sentence = [request, exchange, own = task.get()](size_t sentence, Translation& found) {
      if (!note_attention(*request, *own, sentence, found))
        exchange->answer(error_reply(400, attention_too_large()));
    };
  }
  if (request->only) {
    if (*request->only >= task->sentences.size())
      throw HttpError(400, fmt::format("Invalid request: sentence {} does not exist; the text has "
                                       "{}, counted from 0",
                                       *request->only, task->sentences.size()));
    task->sentences = {task->sentences[*request->only]};
  }
  return task;
}

void Service::count(const Translations& translations) {
  int64_t source = 0, target = 0;
  for (const Translation& t : translations) {
    source += std::ssize(t.source_ids);
    if (!t.n_best.empty()) target += std::ssize(t.n_best.front().ids);
  }
  metrics_.add_tokens(source, target);
}

void Service::enqueue(std::shared_ptr<TranslationTask> task) {
  if (!batcher_.add(std::move(task))) refuse_busy();
}

void Service::submit(const RequestContext& context, TranslateRequestPtr request, Render render) {
  const auto exchange = context.exchange;
  const auto task = task_for(context, request);
  task->finish = [this, exchange, request, render = std::move(render)](TaskOutcome outcome,
                                                                       Translations translations) {
    if (report_failure(*exchange, outcome)) return;
    count(translations);
    exchange->answer(render(*request, translations));
  };
  enqueue(task);
}

void Service::compute(const RequestContext& context, int64_t cost,
                      std::function<HttpReply()> make) {
  const auto task = std::make_shared<TranslationTask>();
  const auto exchange = context.exchange;
  task->client = context.client;
  task->alone = true;
  task->cost = cost;
  task->deadline = TranslationTask::Clock::now() + options_.timeout;
  task->abandoned = [exchange] { return exchange->gone(); };
  task->finish = [exchange, make = std::move(make)](TaskOutcome outcome, const Translations&) {
    if (report_failure(*exchange, outcome)) return;
    try {
      exchange->answer(make());
    } catch (const HttpError& error) {
      exchange->answer(error_reply(error.status(), error.text()));
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) throw;
      exchange->answer(error_reply(400, error.what()));
    }
  };
  enqueue(task);
}

}  // namespace fovea

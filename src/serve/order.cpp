#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "serve/attention_json.h"
#include "serve/markup.h"
#include "serve/refusal.h"
#include "serve/service.h"
#include "serve/source_language.h"
#include "serve/what_if.h"
#include "text/language.h"

namespace fovea {
namespace {

std::string needed(const Parameters& parameters, const char* name) {
  auto text = parameters.text(name);
  if (!text) throw Refusal(400, fmt::format("Invalid request: missing {} parameter", name));
  return *text;
}

[[noreturn]] void refuse_language(const std::string& code) {
  throw Refusal(400, fmt::format("{} is not supported", code));
}

[[noreturn]] void refuse_busy() {
  throw Refusal(429, "Slowdown: too many requests are waiting", {{"Retry-After", "1"}});
}

// What a client is told that gets no answer to its question. One that left is told nothing.
bool told_why(Exchange& exchange, Outcome outcome) {
  if (outcome == Outcome::failed) exchange.answer(error_reply(500, "Cannot translate text"));
  if (outcome == Outcome::late) exchange.answer(error_reply(504, "The translation took too long"));
  return outcome != Outcome::done;
}

// As much of the texts as their language is detected by.
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

// What is told of attention takes hundreds of times the room of the text.
void check_size_with_attention(const std::vector<std::string>& texts) {
  constexpr int64_t kMost = 10'000;
  const int64_t characters = characters_of(texts);
  if (characters > kMost)
    throw Refusal(400, fmt::format("Invalid request: attention is for texts of up to {} characters "
                                   "in all, this request has {}",
                                   kMost, characters));
}

}  // namespace

void Service::check_size(const std::vector<std::string>& texts) const {
  const auto refuse = [](int64_t size, int64_t limit) {
    throw Refusal(
        400, fmt::format("Invalid request: request ({}) exceeds text limit ({})", size, limit));
  };
  if (std::ssize(texts) > options_.text_limit) refuse(std::ssize(texts), options_.text_limit);
  const int64_t characters = characters_of(texts);
  if (options_.char_limit > 0 && characters > options_.char_limit)
    refuse(characters, options_.char_limit);
}

// The model for a pair, or for a name; a text in the language it is wanted in needs none.
void Service::choose_languages(Order& order, const Engines& engines, const std::string& source,
                               const std::string& target, const std::string& model) const {
  const std::vector<std::string> known = known_languages(engines);
  const auto is_known = [&](const std::string& code) {
    return std::ranges::find(known, code) != known.end();
  };
  order.source = canonical_code(source);
  order.target = canonical_code(target);
  if (source == "auto") {
    order.detected = source_language(beginning_of(order.texts, order.html), engines, order.target);
    order.source = order.detected->language;
  }
  if (!is_known(order.source)) refuse_language(source == "auto" ? order.source : source);
  if (!is_known(order.target)) refuse_language(target);
  for (const auto& engine : engines) {
    const bool fits = engine->source() == order.source && engine->target() == order.target;
    if (fits && (model.empty() || engine->name() == model)) {
      order.engine = engine;
      return;
    }
  }
  if (order.source == order.target && model.empty()) return;
  if (!model.empty())
    throw Refusal(400, fmt::format("Invalid request: there is no model {} from {} to {}", model,
                                   order.source, order.target));
  throw Refusal(400, fmt::format("{} ({}) is not available as a target language from {} ({})",
                                 language_name(order.target), order.target,
                                 language_name(order.source), order.source));
}

std::shared_ptr<const Engine> Service::engine_of(const Call& call,
                                                 const Parameters& parameters) const {
  Order order;
  choose_languages(order, call.engines, needed(parameters, "source"), needed(parameters, "target"),
                   parameters.text("model").value_or(""));
  if (!order.engine) throw Refusal(400, "Invalid request: source and target are the same");
  return order.engine;
}

// The pieces of a model count only once it is loaded; until then bytes alone limit a sentence.
PassageOptions Service::passage_options(const Order& order) {
  SentenceLimit limit;
  if (order.engine && order.engine->loaded()) {
    const Package& package = order.engine->package();
    limit = {&package.source, static_cast<size_t>(package.model->max_length() - 1)};
  }
  return {order.source, order.target, limit};
}

// Of an order that asks what if.
void Service::check_one_sentence(const Order& order) {
  if (order.texts.size() == 1 && !order.html &&
      plain_passage(order.texts.front(), passage_options(order))->sentences().size() == 1)
    return;
  throw Refusal(400,
                "Invalid request: prefix, mask_words, mask_heads and force_attention are for q of "
                "one sentence as text");
}

Service::Orders Service::read_order(const Call& call, const Parameters& parameters) const {
  auto order = std::make_shared<Order>();
  const auto texts = parameters.texts("q");
  if (!texts) throw Refusal(400, "Invalid request: missing q parameter");
  const std::string source = needed(parameters, "source"), target = needed(parameters, "target");
  order->texts = texts->values;
  order->is_list = texts->is_list;
  check_size(order->texts);
  const std::string format = parameters.text("format").value_or("text");
  if (format != "text" && format != "html")
    throw Refusal(400, fmt::format("{} format is not supported", format));
  order->html = format == "html";
  Wish& wish = order->wish = options_.wish;
  const double most = static_cast<double>(options_.most_alternatives);
  order->alternatives = parameters.integer("alternatives", {0, most}).value_or(0);
  const auto n_best = parameters.integer("n_best", {1, most + 1});
  wish.beam = parameters.integer("beam_size", {1, 16}).value_or(wish.beam);
  wish.length_penalty =
      parameters.number("length_penalty", {-10, 10}).value_or(wish.length_penalty);
  order->n_best = n_best.value_or(0);
  wish.n_best = std::max(n_best.value_or(1), order->html ? 1 : order->alternatives + 1);
  wish.beam = std::max(wish.beam, wish.n_best);
  wish.attention = parameters.flag("attention");
  if (wish.attention) check_size_with_attention(order->texts);
  wish.alignment = order->html;
  choose_languages(*order, call.engines, source, target, parameters.text("model").value_or(""));
  if (order->engine && asks_what_if(parameters)) {
    check_one_sentence(*order);
    order->alone = true;
    order->changes = call.parsed;
  }
  return order;
}

// Before an order is translated, by the thread that does so: the model need not be there yet. False
// where the client was told what is wrong.
bool Service::read_changes(Order& order, Task& task, Exchange& exchange) {
  try {
    read_what_if(*order.changes, *order.engine, task.sentences.front(), order.wish);
  } catch (const Refusal& refusal) {
    exchange.answer(error_reply(refusal.status(), refusal.text()));
    return false;
  }
  task.wish = order.wish;
  return true;
}

std::span<const Translation> Service::part(const Order& order, const Translations& all,
                                           size_t text) {
  size_t first = 0;
  for (size_t i = 0; i < text; ++i) first += order.passages[i]->sentences().size();
  return std::span(all).subspan(first, order.passages[text]->sentences().size());
}

std::shared_ptr<Task> Service::task_for(const Call& call, const Orders& order) const {
  const auto exchange = call.exchange;
  int64_t cost = order->alone ? kTurnAlone : 0;
  // What is refused must cost little: no sentence is cut for it.
  for (const std::string& text : order->texts)
    cost += translation_cost(estimated_tokens(text), order->wish);
  if (!batcher_.has_room(call.client, cost)) refuse_busy();
  auto task = std::make_shared<Task>();
  task->client = call.client;
  task->engine = order->engine;
  exchange->set_model(order->engine->name());
  task->wish = order->wish;
  task->alone = order->alone;
  task->cost = order->alone ? kTurnAlone : 0;
  if (order->changes)
    task->prepare = [order, exchange](Task& own) { return read_changes(*order, own, *exchange); };
  task->deadline = Task::Clock::now() + options_.timeout;
  task->abandoned = [exchange, order] { return exchange->gone() || order->too_large; };
  const PassageOptions passages = passage_options(*order);
  for (const std::string& text : order->texts) {
    order->passages.push_back(order->html ? html_passage(text, passages)
                                          : plain_passage(text, passages));
    const auto& sentences = order->passages.back()->sentences();
    task->sentences.insert(task->sentences.end(), sentences.begin(), sentences.end());
  }
  if (order->wish.attention) {
    order->attention.resize(task->sentences.size());
    task->each = [order, exchange, own = task.get()](size_t sentence, Translation& found) {
      if (!note_attention(*order, *own, sentence, found))
        exchange->answer(error_reply(400, attention_too_large()));
    };
  }
  if (order->only) {
    if (*order->only >= task->sentences.size())
      throw Refusal(400, fmt::format("Invalid request: there is no sentence {} in a text of {}",
                                     *order->only, task->sentences.size()));
    task->sentences = {task->sentences[*order->only]};
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

void Service::enqueue(std::shared_ptr<Task> task) {
  if (!batcher_.add(std::move(task))) refuse_busy();
}

void Service::submit(const Call& call, Orders order, Render render) {
  const auto exchange = call.exchange;
  const auto task = task_for(call, order);
  task->finish = [this, exchange, order, render = std::move(render)](Outcome outcome,
                                                                     Translations translations) {
    if (told_why(*exchange, outcome)) return;
    count(translations);
    exchange->answer(render(*order, translations));
  };
  enqueue(task);
}

void Service::compute(const Call& call, int64_t cost, std::function<Reply()> make) {
  const auto task = std::make_shared<Task>();
  const auto exchange = call.exchange;
  task->client = call.client;
  task->alone = true;
  task->cost = cost;
  task->deadline = Task::Clock::now() + options_.timeout;
  task->abandoned = [exchange] { return exchange->gone(); };
  task->finish = [exchange, make = std::move(make)](Outcome outcome, const Translations&) {
    if (told_why(*exchange, outcome)) return;
    try {
      exchange->answer(make());
    } catch (const Refusal& refusal) {
      exchange->answer(error_reply(refusal.status(), refusal.text()));
    } catch (const Error& error) {
      if (error.code() != Exit::usage) throw;
      exchange->answer(error_reply(400, error.what()));
    }
  };
  enqueue(task);
}

}  // namespace fovea

#include "serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/log_fields.h"
#include "base/utf8.h"
#include "serve/client_address.h"
#include "serve/refusal.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

// DeepL's clients look for another word than LibreTranslate's.
Reply refusal_reply(const std::string& endpoint, const Refusal& refusal) {
  const char* const key = endpoint.starts_with("/v2/") ? "message" : "error";
  Reply reply = json_reply({{key, refusal.text()}}, refusal.status());
  reply.headers = refusal.headers();
  return reply;
}

std::string retry_after(double seconds) {
  return std::to_string(static_cast<int64_t>(std::ceil(seconds)));
}

// That in the header Authorization; "" where there is none.
std::string key_in_header(const Request& head) {
  const std::string_view header = head.header("authorization");
  for (const std::string_view scheme : {"Bearer ", "DeepL-Auth-Key "})
    if (lower(header.substr(0, scheme.size())) == lower(scheme))
      return std::string(header.substr(scheme.size()));
  return "";
}

}  // namespace

const std::vector<Service::Route>& Service::routes() {
  using enum Route::Door;
  static const std::vector<Route> all = {
      {"GET", "/", &Service::page, open},
      {"GET", "/web/", &Service::page, open},
      {"GET", "/v1/models", &Service::models, open},
      {"GET", "/health", &Service::health, open},
      {"GET", "/livez", &Service::alive, open},
      {"GET", "/readyz", &Service::ready, open},
      {"GET", "/metrics", &Service::metrics, operators, Route::Cost::of_answer},
      {"GET", "/openapi.json", &Service::openapi, open},
      {"GET", "/spec", &Service::openapi, open},
      {"GET", "/languages", &Service::languages, open},
      {"GET", "/frontend/settings", &Service::settings, open},
      {"POST", "/translate", &Service::translate, key},
      {"POST", "/detect", &Service::detect, key},
      {"POST", "/suggest", &Service::suggest, key},
      {"POST", "/translate_file", &Service::translate_file, key},
      {"GET", "/download_file/", &Service::download_file, open, Route::Cost::of_answer},
      {"POST", "/v1/translate/stream", &Service::stream, key},
      {"POST", "/v1/explain", &Service::explain, key},
      {"GET", "/v1/positions", &Service::positions, key},
      {"POST", "/v1/neighbours", &Service::neighbours, key},
      {"GET", "/v1/training", &Service::training, key},
      {"POST", "/v1/training/attention", &Service::trained_attention, key},
      {"POST", "/v2/translate", &Service::deepl_translate, key},
      {"GET", "/v2/languages", &Service::deepl_languages, key},
  };
  return all;
}

Service::Service(ServiceOptions options, const BatcherOptions& batches, Engines engines)
    : options_(std::move(options)), batcher_(batches), engines_(std::move(engines)),
      keys_(std::make_shared<const ApiKeys>(std::move(options_.keys))) {
  batcher_.observe = [this](const BatchStep& step) {
    if (step.began > 0) metrics_.queue_wait.observe(step.waited);
    metrics_.batch_sentences.observe(static_cast<double>(step.sentences));
    metrics_.batch_tokens.observe(static_cast<double>(step.tokens));
    metrics_.translate_seconds.fetch_add(step.seconds);
  };
}

void Service::replace(Engines engines) {
  const std::lock_guard hold(mutex_);
  engines_ = std::move(engines);
}

void Service::replace_keys(ApiKeys keys) {
  auto next = std::make_shared<const ApiKeys>(std::move(keys));
  const std::lock_guard hold(mutex_);
  keys_ = std::move(next);
}

std::shared_ptr<const ApiKeys> Service::keys() const {
  const std::lock_guard hold(mutex_);
  return keys_;
}

Service::Found Service::find(const Request& request) {
  Found found;
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  for (const Route& route : routes()) {
    const bool below = route.path.size() > 1 && route.path.ends_with('/');
    if (below ? !request.path.starts_with(route.path) : request.path != route.path) continue;
    found.path = &route;
    if (method == route.method) found.route = &route;
  }
  return found;
}

void Service::count_refused(int status) {
  metrics_.refused(status);
  if (options_.log_requests)
    log_event("request refused unread", std::vector<LogField>{{"status", int64_t{status}}},
              fmt::format("refused unread: {}", status));
}

std::optional<Reply> Service::screen(const Request& head) {
  const Found found = find(head);
  const std::string key = key_in_header(head);
  if (!found.route || found.route->door == Route::Door::open || key.empty()) return std::nullopt;
  try {
    check_key(head, *keys(), key);
  } catch (const Refusal& refusal) {
    Reply reply = refusal_reply(found.endpoint(), refusal);
    reply.headers.emplace_back("X-Request-Id", request_id(head));
    return reply;
  }
  return std::nullopt;
}

bool Service::is_costly(const Request& head) {
  const Found found = find(head);
  return found.route && found.route->cost == Route::Cost::of_answer;
}

void Service::handle(Request request, std::shared_ptr<Exchange> exchange) {
  const Found all = find(request);
  const Route* const found = all.route;
  const Route* const known = all.path;
  const std::string endpoint = all.endpoint();
  RequestNote note{.id = request_id(request),
                   .method = printable(request.method),
                   .path = known ? std::string(known->path) : printable(request.path),
                   .endpoint = endpoint,
                   .bytes = request.body.size()};
  using Log = CountedExchange::Log;
  auto counted = std::make_shared<CountedExchange>(std::move(exchange), metrics_, std::move(note),
                                                   options_.log_requests ? Log::line : Log::none);
  if (request.method == "OPTIONS") return counted->answer({.status = 204, .type = ""});
  if (!known) return counted->answer(error_reply(404, "Not Found"));
  if (!found) {
    Reply reply = error_reply(405, "The method is not allowed for the requested URL.");
    reply.headers.emplace_back("Allow", known->method);
    return counted->answer(std::move(reply));
  }
  try {
    Call call{std::move(request), counted};
    if (found->door != Route::Door::open) admit(call, found->door);
    {
      const std::lock_guard hold(mutex_);
      call.engines = engines_;
    }
    (this->*found->act)(std::move(call));
  } catch (const Refusal& refusal) {
    counted->answer(refusal_reply(endpoint, refusal));
  }
}

const Parameters& Service::Call::parameters() {
  if (!parsed) parsed = std::make_shared<const Parameters>(request);
  return *parsed;
}

// The key of a request, wherever clients put it: a field, Authorization, the query.
std::string Service::key_of(Call& call) {
  if (std::string key = key_in_header(call.request); !key.empty()) return key;
  for (const char* name : {"api_key", "apiKey", "auth_key"})
    if (auto key = call.parameters().text(name)) return *key;
  return "";
}

std::string Service::address_of(const Request& request) const {
  return client_group(request.client(options_.proxies));
}

// Null without a key; Refusal 403 or 429 if it is wrong, or too many were.
const ApiKey* Service::check_key(const Request& request, const ApiKeys& keys,
                                 const std::string& given) {
  if (keys.empty() || given.empty()) return nullptr;
  const std::string address = address_of(request);
  const auto now = Clock::now();
  if (const auto wait = guard_.wait(address, given, now))
    throw Refusal(429, "Slowdown: too many wrong API keys from this address",
                  {{"Retry-After", retry_after(*wait)}});
  const ApiKey* const key = keys.find(given);
  if (!key) {
    guard_.reject(address, now);
    throw Refusal(403, "Invalid API key");
  }
  guard_.accept(address, given);
  return key;
}

void Service::admit(Call& call, Route::Door door) {
  const std::shared_ptr<const ApiKeys> keys = this->keys();
  const ApiKey* const key = keys->empty() ? nullptr : check_key(call.request, *keys, key_of(call));
  const bool needed = options_.keys_required || (door == Route::Door::operators && !keys->empty());
  if (!key && needed) throw Refusal(400, "Please contact the server operator to get an API key");
  call.client = key ? "key " + key->key : "address " + address_of(call.request);
  if (door == Route::Door::operators) return;
  const int64_t per_minute = key ? key->per_minute : options_.requests_per_minute;
  if (const auto wait = limiter_.ask(call.client, per_minute, Clock::now()))
    throw Refusal(429, fmt::format("Slowdown: {} per 1 minute", per_minute),
                  {{"Retry-After", retry_after(*wait)}});
}

void Service::health(Call call) { call.exchange->answer(json_reply({{"status", "ok"}})); }
void Service::alive(Call call) { call.exchange->answer(json_reply({{"status", "ok"}})); }

void Service::ready(Call call) {
  const char* const why = draining_         ? "shutting down"
                          : batcher_.full() ? "the queue is full"
                                            : nullptr;
  call.exchange->answer(why ? json_reply({{"status", why}}, 503) : json_reply({{"status", "ok"}}));
}

void Service::metrics(Call call) {
  ServiceMetrics::Now now{.queue = static_cast<int64_t>(batcher_.waiting())};
  if (options_.connections) now.connections = static_cast<int64_t>(options_.connections());
  for (const auto& engine : call.engines)
    now.models.push_back(
        {engine->name(), engine->source(), engine->target(), engine->parameters()});
  call.exchange->answer({.body = metrics_.text(now),
                         .type = "text/plain; version=0.0.4; charset=utf-8",
                         .readers = Readers::same_origin});
}

void Service::openapi(Call call) { call.exchange->answer({.body = description()}); }

Reply json_reply(const nlohmann::ordered_json& value, int status) {
  return {.status = status,
          .body = value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

Reply error_reply(int status, const std::string& text) {
  return json_reply({{"error", text}}, status);
}

std::vector<std::string> known_languages(const Engines& engines) {
  std::set<std::string> codes;
  for (const auto& engine : engines) codes.insert({engine->source(), engine->target()});
  return {codes.begin(), codes.end()};
}

}  // namespace fovea

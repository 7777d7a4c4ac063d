#include "serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/ascii.h"
#include "base/log_fields.h"
#include "base/utf8.h"
#include "http/client_address.h"
#include "http/http_error.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

// Clients of DeepL and of LibreTranslate expect different keys.
HttpReply reply_for(const std::string& endpoint, const HttpError& error) {
  const char* const key = endpoint.starts_with("/v2/") ? "message" : "error";
  HttpReply reply = json_reply({{key, error.text()}}, error.status());
  reply.headers = error.headers();
  return reply;
}

std::string retry_after(double seconds) {
  return std::to_string(static_cast<int64_t>(std::ceil(seconds)));
}

// The key in the header Authorization; "" if there is none.
std::string key_in_header(const HttpRequest& head) {
  const std::string_view header = head.header("authorization");
  for (const std::string_view scheme : {"Bearer ", "DeepL-Auth-Key "})
    if (lower_ascii(header.substr(0, scheme.size())) == lower_ascii(scheme))
      return std::string(header.substr(scheme.size()));
  return "";
}

}  // namespace

const std::vector<Service::Route>& Service::routes() {
  using enum Route::Access;
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

Service::Service(ServiceOptions options, const BatcherOptions& batches, ServedModels models)
    : options_(std::move(options)), batcher_(batches), models_(std::move(models)),
      keys_(std::make_shared<const ApiKeys>(std::move(options_.keys))) {
  batcher_.observe = [this](const BatchStep& step) {
    if (step.began > 0) metrics_.queue_wait.observe(step.waited);
    metrics_.batch_sentences.observe(static_cast<double>(step.sentences));
    metrics_.batch_tokens.observe(static_cast<double>(step.tokens));
    metrics_.translate_seconds.fetch_add(step.seconds);
  };
}

void Service::replace(ServedModels models) {
  const std::lock_guard hold(mutex_);
  models_ = std::move(models);
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

Service::RouteMatch Service::find_route(const HttpRequest& request) {
  RouteMatch found;
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

std::optional<HttpReply> Service::screen(const HttpRequest& head) {
  const RouteMatch found = find_route(head);
  const std::string key = key_in_header(head);
  if (!found.route || found.route->access == Route::Access::open || key.empty())
    return std::nullopt;
  try {
    check_key(head, *keys(), key);
  } catch (const HttpError& error) {
    HttpReply reply = reply_for(found.endpoint(), error);
    reply.headers.emplace_back("X-Request-Id", request_id(head));
    return reply;
  }
  return std::nullopt;
}

bool Service::is_costly(const HttpRequest& head) {
  const RouteMatch found = find_route(head);
  return found.route && found.route->cost == Route::Cost::of_answer;
}

void Service::handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  const RouteMatch all = find_route(request);
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
    HttpReply reply = error_reply(405, "The method is not allowed for the requested URL.");
    reply.headers.emplace_back("Allow", known->method);
    return counted->answer(std::move(reply));
  }
  try {
    RequestContext context{std::move(request), counted};
    if (found->access != Route::Access::open) admit(context, found->access);
    {
      const std::lock_guard hold(mutex_);
      context.models = models_;
    }
    (this->*found->handler)(std::move(context));
  } catch (const HttpError& error) {
    counted->answer(reply_for(endpoint, error));
  }
}

const RequestParameters& Service::RequestContext::parameters() {
  if (!parsed) parsed = std::make_shared<const RequestParameters>(request);
  return *parsed;
}

// The key of a request: from the header Authorization, a field of the body, or the query.
std::string Service::key_of(RequestContext& context) {
  if (std::string key = key_in_header(context.request); !key.empty()) return key;
  for (const char* name : {"api_key", "apiKey", "auth_key"})
    if (auto key = context.parameters().text(name)) return *key;
  return "";
}

std::string Service::address_of(const HttpRequest& request) const {
  return client_group(request.client(options_.proxies));
}

// Null without a key. Throws HttpError 403 if the key is wrong, 429 after too many wrong keys.
const ApiKey* Service::check_key(const HttpRequest& request, const ApiKeys& keys,
                                 const std::string& given) {
  if (keys.empty() || given.empty()) return nullptr;
  const std::string address = address_of(request);
  const auto now = Clock::now();
  if (const auto wait = guard_.wait(address, given, now))
    throw HttpError(429, "Slowdown: too many wrong API keys from this address",
                    {{"Retry-After", retry_after(*wait)}});
  const ApiKey* const key = keys.find(given);
  if (!key) {
    guard_.reject(address, now);
    throw HttpError(403, "Invalid API key");
  }
  guard_.accept(address, given);
  return key;
}

void Service::admit(RequestContext& context, Route::Access access) {
  const std::shared_ptr<const ApiKeys> keys = this->keys();
  const ApiKey* const key =
      keys->empty() ? nullptr : check_key(context.request, *keys, key_of(context));
  const bool needed =
      options_.keys_required || (access == Route::Access::operators && !keys->empty());
  if (!key && needed) throw HttpError(400, "Please contact the server operator to get an API key");
  context.client = key ? "key " + key->key : "address " + address_of(context.request);
  if (access == Route::Access::operators) return;
  const int64_t per_minute = key ? key->per_minute : options_.requests_per_minute;
  if (const auto wait = limiter_.take(context.client, per_minute, Clock::now()))
    throw HttpError(429, fmt::format("Slowdown: {} per 1 minute", per_minute),
                    {{"Retry-After", retry_after(*wait)}});
}

void Service::health(RequestContext context) {
  context.exchange->answer(json_reply({{"status", "ok"}}));
}
void Service::alive(RequestContext context) {
  context.exchange->answer(json_reply({{"status", "ok"}}));
}

void Service::ready(RequestContext context) {
  const char* const why = draining_         ? "shutting down"
                          : batcher_.full() ? "the queue is full"
                                            : nullptr;
  context.exchange->answer(why ? json_reply({{"status", why}}, 503)
                               : json_reply({{"status", "ok"}}));
}

void Service::metrics(RequestContext context) {
  ServiceMetrics::Now now{.queue = static_cast<int64_t>(batcher_.waiting())};
  if (options_.connections) now.connections = static_cast<int64_t>(options_.connections());
  for (const auto& model : context.models)
    now.models.push_back({model->name(), model->source(), model->target(), model->parameters()});
  context.exchange->answer({.body = metrics_.text(now),
                            .type = "text/plain; version=0.0.4; charset=utf-8",
                            .cors = CorsPolicy::same_origin});
}

void Service::openapi(RequestContext context) { context.exchange->answer({.body = description()}); }

HttpReply json_reply(const nlohmann::ordered_json& value, int status) {
  return {.status = status,
          .body = value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

HttpReply error_reply(int status, const std::string& text) {
  return json_reply({{"error", text}}, status);
}

std::vector<std::string> known_languages(const ServedModels& models) {
  std::set<std::string> codes;
  for (const auto& model : models) codes.insert({model->source(), model->target()});
  return {codes.begin(), codes.end()};
}

}  // namespace fovea

#include "serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/log.h"
#include "base/utf8.h"
#include "serve/refusal.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

// What the log says of a request: never a key, nor any part of a text.
struct Noted {
  std::string method, path;
  size_t bytes;
};

// An exchange that is counted.
class Counted : public Exchange {
 public:
  Counted(std::shared_ptr<Exchange> inner, ServiceMetrics& metrics, std::string endpoint,
          std::optional<Noted> noted)
      : inner_(std::move(inner)), metrics_(metrics), endpoint_(std::move(endpoint)),
        noted_(std::move(noted)) {
    ++metrics_.in_flight;
  }
  ~Counted() override { end_with(inner_->gone() ? 499 : 500); }

  void answer(Reply reply) override {
    sent_ = reply.body.size();
    end_with(reply.status);
    inner_->answer(std::move(reply));
  }
  void begin(Reply head) override { inner_->begin(std::move(head)); }
  void send(std::string part) override {
    sent_ += part.size();
    inner_->send(std::move(part));
  }
  void end() override {
    end_with(200);
    inner_->end();
  }
  bool gone() const override { return inner_->gone(); }

 private:
  void end_with(int status) {
    if (ended_.exchange(true)) return;
    --metrics_.in_flight;
    const std::chrono::duration<double> seconds = Clock::now() - begin_;
    metrics_.answered(endpoint_, status, seconds.count());
    if (noted_)
      log_info("{} {} {}, {} bytes in, {} out, {:.1f} ms", noted_->method, noted_->path, status,
               noted_->bytes, sent_, 1000 * seconds.count());
  }

  std::shared_ptr<Exchange> inner_;
  ServiceMetrics& metrics_;
  std::string endpoint_;
  std::optional<Noted> noted_;
  size_t sent_ = 0;  // bytes of the body
  std::atomic<bool> ended_{false};
  Clock::time_point begin_ = Clock::now();
};

// DeepL's clients look for another word than LibreTranslate's.
Reply refusal_reply(const std::string& endpoint, const Refusal& refusal) {
  const char* const key = endpoint.starts_with("/v2/") ? "message" : "error";
  Reply reply = json_reply({{key, refusal.text()}}, refusal.status());
  reply.headers = refusal.headers();
  return reply;
}

Refusal wrong_key() { return {403, "Invalid API key"}; }

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
      {"GET", "/metrics", &Service::metrics, key},
      {"GET", "/openapi.json", &Service::openapi, open},
      {"GET", "/spec", &Service::openapi, open},
      {"GET", "/languages", &Service::languages, open},
      {"GET", "/frontend/settings", &Service::settings, open},
      {"POST", "/translate", &Service::translate, key},
      {"POST", "/detect", &Service::detect, key},
      {"POST", "/suggest", &Service::suggest, key},
      {"POST", "/translate_file", &Service::translate_file, key},
      {"GET", "/download_file/", &Service::download_file, open},
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
    : options_(std::move(options)), batcher_(batches), engines_(std::move(engines)) {
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
  if (options_.log_requests) log_info("refused unread: {}", status);
}

std::optional<Reply> Service::screen(const Request& head) const {
  const Found found = find(head);
  const std::string key = key_in_header(head);
  if (!found.route || found.route->door == Route::Door::open || options_.keys.empty() ||
      key.empty() || options_.keys.find(key))
    return std::nullopt;
  return refusal_reply(found.endpoint(), wrong_key());
}

void Service::handle(Request request, std::shared_ptr<Exchange> exchange) {
  const Found all = find(request);
  const Route* const found = all.route;
  const Route* const known = all.path;
  const std::string endpoint = all.endpoint();
  std::optional<Noted> noted;
  if (options_.log_requests)
    noted = {printable(request.method), known ? std::string(known->path) : printable(request.path),
             request.body.size()};
  auto counted =
      std::make_shared<Counted>(std::move(exchange), metrics_, endpoint, std::move(noted));
  if (request.method == "OPTIONS") return counted->answer({.status = 204, .type = ""});
  if (!known) return counted->answer(error_reply(404, "Not Found"));
  if (!found) {
    Reply reply = error_reply(405, "The method is not allowed for the requested URL.");
    reply.headers.emplace_back("Allow", known->method);
    return counted->answer(std::move(reply));
  }
  try {
    Call call{std::move(request), counted};
    if (found->door == Route::Door::key) check_rate(call);
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

void Service::check_rate(Call& call) {
  int64_t per_minute = options_.requests_per_minute;
  std::string client = "address " + call.request.client(options_.proxies);
  if (!options_.keys.empty()) {
    const std::string given = key_of(call);
    const ApiKey* key = options_.keys.find(given);
    if (!given.empty() && !key) throw wrong_key();
    if (!key && options_.keys_required)
      throw Refusal(400, "Please contact the server operator to get an API key");
    if (key) {
      per_minute = key->per_minute;
      client = "key " + key->key;
    }
  }
  if (const auto wait = limiter_.ask(client, per_minute, Clock::now()))
    throw Refusal(429, fmt::format("Slowdown: {} per 1 minute", per_minute),
                  {{"Retry-After", std::to_string(static_cast<int64_t>(std::ceil(*wait)))}});
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
  call.exchange->answer(
      {.body = metrics_.text(now), .type = "text/plain; version=0.0.4; charset=utf-8"});
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

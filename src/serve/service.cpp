#include "serve/service.h"

#include <fmt/format.h>

#include "base/log_fields.h"
#include "base/utf8.h"
#include "http/http_error.h"
#include "http/json_reply.h"
#include "serve/web_page.h"

namespace fovea {
namespace {

// Returns the reply for an error. Clients of DeepL and of LibreTranslate expect different names of
// its JSON field.
HttpReply reply_for(const std::string& endpoint, const HttpError& error) {
  const char* const key = endpoint.starts_with("/v2/") ? "message" : "error";
  HttpReply reply = json_reply({{key, error.text()}}, error.status());
  reply.headers = error.headers();
  return reply;
}

}  // namespace

Service::Service(ServiceOptions options, const BatcherOptions& batches, ServedModels models)
    : limits_(std::move(options.limits)), log_requests_(options.log_requests),
      access_(std::move(options.access)), batcher_(batches),
      queue_(batcher_, metrics_, options.timeout),
      libretranslate_(limits_, access_, queue_, options.files),
      files_(limits_, queue_, options.files), deepl_(limits_, queue_), stream_(limits_, queue_),
      explain_(limits_, queue_), training_(limits_, queue_),
      status_(batcher_, metrics_, std::move(options.connections)),
      router_({libretranslate_.routes(), files_.routes(), deepl_.routes(), stream_.routes(),
               explain_.routes(), training_.routes(), status_.routes(), page_routes(),
               openapi_routes()}),
      openapi_(router_.openapi()), models_(std::move(models)) {
  batcher_.observe = [this](const BatchStep& step) {
    if (step.began > 0) metrics_.queue_wait.observe(step.waited);
    metrics_.batch_sentences.observe(static_cast<double>(step.sentences));
    metrics_.batch_tokens.observe(static_cast<double>(step.tokens));
    metrics_.translate_seconds.fetch_add(step.seconds);
  };
}

std::vector<Route> Service::openapi_routes() {
  const auto send = [this](RequestContext& context) {
    context.exchange->answer({.body = openapi_});
  };
  return {{"GET", "/openapi.json", AccessRule::open, AnswerKind::small, send},
          {"GET", "/spec", AccessRule::open, AnswerKind::small, send}};
}

void Service::replace(ServedModels models) {
  const std::lock_guard hold(mutex_);
  models_ = std::move(models);
}

void Service::count_refused(int status) {
  metrics_.refused(status);
  if (log_requests_)
    log_event("request refused unread", std::vector<LogField>{{"status", int64_t{status}}},
              fmt::format("refused unread: {}", status));
}

std::optional<HttpReply> Service::screen(const HttpRequest& head) {
  const Router::Match found = router_.find(head);
  if (!found.route || found.route->access == AccessRule::open) return std::nullopt;
  try {
    access_.check_header(head);
  } catch (const HttpError& error) {
    HttpReply reply = reply_for(found.endpoint(), error);
    reply.headers.emplace_back("X-Request-Id", request_id(head));
    return reply;
  }
  return std::nullopt;
}

bool Service::is_costly(const HttpRequest& head) const {
  const Router::Match found = router_.find(head);
  return found.route && found.route->answer == AnswerKind::large;
}

void Service::handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  const Router::Match found = router_.find(request);
  const std::string endpoint = found.endpoint();
  RequestNote note{.id = request_id(request),
                   .method = printable(request.method),
                   .path = found.path ? std::string(found.path->path) : printable(request.path),
                   .endpoint = endpoint,
                   .bytes = request.body.size(),
                   .logged = log_requests_};
  auto counted = std::make_shared<CountedExchange>(std::move(exchange), metrics_, std::move(note));
  if (request.method == "OPTIONS") return counted->answer({.status = 204, .type = ""});
  try {
    const Route& route = found.required();
    RequestContext context{std::move(request), counted};
    access_.admit(context, route.access);
    {
      const std::lock_guard hold(mutex_);
      context.models = models_;
    }
    route.handler(context);
  } catch (const HttpError& error) {
    counted->answer(reply_for(endpoint, error));
  }
}

}  // namespace fovea

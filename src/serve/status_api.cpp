#include "serve/status_api.h"

#include "http/json_reply.h"

namespace fovea {
namespace {

void report_health(RequestContext& context) {
  context.exchange->answer(json_reply({{"status", "ok"}}));
}

}  // namespace

std::vector<Route> StatusApi::routes() {
  using enum AccessRule;
  using enum AnswerKind;
  return {{"GET", "/health", open, small, report_health},
          {"GET", "/livez", open, small, report_health},
          {"GET", "/readyz", open, small, [this](auto& context) { ready(context); }},
          {"GET", "/metrics", operators, large, [this](auto& context) { metrics(context); }}};
}

void StatusApi::ready(RequestContext& context) const {
  const char* const why = draining_         ? "shutting down"
                          : batcher_.full() ? "the queue is full"
                                            : nullptr;
  context.exchange->answer(why ? json_reply({{"status", why}}, 503)
                               : json_reply({{"status", "ok"}}));
}

void StatusApi::metrics(RequestContext& context) const {
  ServiceMetrics::Now now{.queue = static_cast<int64_t>(batcher_.waiting())};
  if (connections_) now.connections = static_cast<int64_t>(connections_());
  for (const auto& model : context.models)
    now.models.push_back({model->name(), model->source(), model->target(), model->parameters()});
  context.exchange->answer({.body = metrics_.text(now),
                            .type = "text/plain; version=0.0.4; charset=utf-8",
                            .cors = CorsPolicy::same_origin});
}

}  // namespace fovea

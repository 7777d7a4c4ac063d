#pragma once

#include <atomic>
#include <functional>

#include "serve/batcher.h"
#include "serve/router.h"
#include "serve/service_metrics.h"

namespace fovea {

// The endpoints for health, readiness and metrics. Thread-safe.
class StatusApi {
 public:
  StatusApi(const Batcher& batcher, const ServiceMetrics& metrics,
            std::function<size_t()> connections)
      : batcher_(batcher), metrics_(metrics), connections_(std::move(connections)) {}
  std::vector<Route> routes();
  void drain() { draining_ = true; }  // /readyz returns 503 afterwards

 private:
  void ready(RequestContext& context) const;
  void metrics(RequestContext& context) const;

  const Batcher& batcher_;
  const ServiceMetrics& metrics_;
  std::function<size_t()> connections_;  // number of connections; may be empty
  std::atomic<bool> draining_ = false;
};

}  // namespace fovea

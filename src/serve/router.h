#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/counted_exchange.h"
#include "serve/request_parameters.h"
#include "serve/served_model.h"

namespace fovea {

// A request, the exchange that answers it, and the models of the service when it arrived.
struct RequestContext {
  HttpRequest request;
  std::shared_ptr<CountedExchange> exchange;
  ServedModels models = {};
  std::string client = {};  // the client for limits and fair queueing: "key K" or "address A"
  std::shared_ptr<const RequestParameters> parsed = nullptr;

  const RequestParameters& parameters();  // parsed once; throws HttpError 400
};

// The clients that may use an endpoint. key: needs a key if keys are required, and counts against
// rate limits. operators: needs a key if there are keys, and has no rate limit.
enum class Access { open, key, operators };

// The way in which an endpoint answers. large: at once, and the answer may take long even if the
// request is small. computed: a worker thread computes the answer, which may fail or be late.
// events: worker threads send events, also about failures.
enum class AnswerKind { small, large, computed, events };

// An endpoint. A path that ends with '/' matches all paths below it.
struct Route {
  const char* method;
  std::string_view path;
  Access access;
  AnswerKind answer;
  std::function<void(RequestContext& context)> handler;  // answers, or throws an HttpError

  bool has_paths_below() const { return path.size() > 1 && path.ends_with('/'); }
};

// The endpoints of an API and their OpenAPI descriptions: the JSON of "paths".
struct Endpoints {
  std::vector<Route> routes;
  const char* openapi;
};

// The table of all endpoints. Thread-safe after the last add().
class Router {
 public:
  void add(Endpoints api) { apis_.push_back(std::move(api)); }

  struct Match {
    const Route* route = nullptr;  // null if there is none
    const Route* path = nullptr;   // the same, or one with another method
    std::string endpoint() const { return std::string(route ? route->path : "other"); }
    const Route& required() const;  // throws HttpError 404 or 405 if there is none
  };
  Match find(const HttpRequest& request) const;
  std::string openapi() const;  // the description of all endpoints: OpenAPI 3.0.3 (openapi.cpp)

 private:
  std::vector<Endpoints> apis_;
};

}  // namespace fovea

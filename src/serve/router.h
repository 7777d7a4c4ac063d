#pragma once

#include <functional>
#include <initializer_list>
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

  const RequestParameters& parameters();  // parses the request once; throws HttpError 400
};

// The rule of access to an endpoint. open: no key is needed. key: a key is needed if the service
// requires keys, and requests count against rate limits. operators: a key is needed if the service
// has keys, and there is no rate limit.
enum class AccessRule { open, key, operators };

// The way in which an endpoint answers. small: at once. large: at once, but making the answer may
// take long even if the request is small. computed: a worker thread computes the answer, which may
// fail or be late. events: worker threads send events, also about failures.
enum class AnswerKind { small, large, computed, events };

// An endpoint. A path that ends with '/' matches all paths below it. The API that returns a route
// must outlive it, and so must the arguments of the constructor of that API.
struct Route {
  const char* method;
  std::string_view path;
  AccessRule access;
  AnswerKind answer;
  std::function<void(RequestContext& context)> handler;  // answers, or throws an HttpError

  bool has_paths_below() const { return path.size() > 1 && path.ends_with('/'); }
};

// The table of the endpoints of all APIs. Thread-safe.
class Router {
 public:
  explicit Router(std::initializer_list<std::vector<Route>> apis);

  struct Match {
    const Route* route = nullptr;  // null: no route
    const Route* path = nullptr;   // a route of this path, maybe for another method
    std::string endpoint() const { return std::string(route ? route->path : "other"); }
    const Route& required() const;  // throws HttpError 404 or 405 if there is none
  };
  Match find(const HttpRequest& request) const;
  // Returns the description of all endpoints in OpenAPI 3.0.3 (openapi.cpp). The *.json files here
  // describe the endpoints of each API, except errors that follow from the properties of a Route.
  std::string openapi() const;

 private:
  std::vector<Route> routes_;
};

}  // namespace fovea

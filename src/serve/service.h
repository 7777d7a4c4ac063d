#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "serve/access_control.h"
#include "serve/deepl_api.h"
#include "serve/explain_api.h"
#include "serve/file_api.h"
#include "serve/libretranslate_api.h"
#include "serve/status_api.h"
#include "serve/stream_api.h"
#include "serve/training_api.h"
#include "serve/translation_queue.h"

namespace fovea {

// The options of a service.
struct ServiceOptions {
  RequestLimits limits = {};
  AccessOptions access = {};
  bool files = true;
  bool log_requests = false;                  // a line each, without texts, keys and addresses
  std::chrono::milliseconds timeout{60'000};  // from request to answer
  std::function<size_t()> connections = nullptr;
};

// The HTTP service. It passes each request that access control admits to the API that the router
// finds. docs/serve.md describes each endpoint. Thread-safe.
class Service {
 public:
  Service(ServiceOptions options, const BatcherOptions& batches, ServedModels models);

  // The handler of an HttpServer.
  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange);
  // Returns the answer to a request with a wrong key in its header, or nullopt if the server should
  // read the body.
  std::optional<HttpReply> screen(const HttpRequest& head);
  // Whether the answer may take long even if the request is small.
  bool is_costly(const HttpRequest& head) const;
  void count_refused(int status);  // counts a request that the server could not read

  Batcher& batcher() { return batcher_; }
  void replace(ServedModels models);  // running translations keep the old models
  void replace_keys(ApiKeys keys) { access_.replace_keys(std::move(keys)); }
  void drain() { status_.drain(); }  // /readyz returns 503 afterwards

 private:
  std::vector<Route> openapi_routes();

  const RequestLimits limits_;
  const bool log_requests_;
  ServiceMetrics metrics_;  // must outlive the batcher, whose exchanges update it
  AccessControl access_;
  Batcher batcher_;
  TranslationQueue queue_;
  LibreTranslateApi libretranslate_;
  FileApi files_;
  DeepLApi deepl_;
  StreamApi stream_;
  ExplainApi explain_;
  TrainingApi training_;
  StatusApi status_;
  const Router router_;
  const std::string openapi_;
  std::mutex mutex_;  // guards models_
  ServedModels models_;
};

}  // namespace fovea

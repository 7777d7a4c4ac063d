#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "document/document.h"
#include "http/api_keys.h"
#include "http/http.h"
#include "serve/batcher.h"
#include "serve/counted_exchange.h"
#include "serve/file_store.h"
#include "serve/request_parameters.h"
#include "serve/served_model.h"
#include "serve/service_metrics.h"
#include "text/language_detector.h"

namespace fovea {

// The options of a service.
struct ServiceOptions {
  int64_t char_limit = 50'000;  // maximum characters of a request; 0: no limit
  int64_t text_limit = 1'000;   // maximum texts of a request
  int64_t most_alternatives = 15;
  int64_t requests_per_minute = 0;  // of a client without a key; 0: no limit
  int64_t proxies = 0;              // the number of chained proxies before the service
  ApiKeys keys = {};                // initial keys: see Service::replace_keys
  bool keys_required = false;
  bool files = true;
  bool log_requests = false;                  // a line each, without texts, keys and addresses
  std::chrono::milliseconds timeout{60'000};  // from request to answer
  DecodeOptions decoding = {};                // defaults of a request
  std::function<size_t()> connections = nullptr;
};

// The HTTP service: the API of LibreTranslate with additions, /v2/translate of DeepL, health and
// metrics. docs/serve.md describes each endpoint. Thread-safe.
class Service {
 public:
  using Json = nlohmann::ordered_json;

  Service(ServiceOptions options, const BatcherOptions& batches, ServedModels models);

  // The handler of an HttpServer.
  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange);
  // The answer to a request with a wrong key in its header; nullopt if its body should be read.
  std::optional<HttpReply> screen(const HttpRequest& head);
  // Whether the answer may take long even if the request is small.
  static bool is_costly(const HttpRequest& head);
  void count_refused(int status);  // counts a request that the server could not read

  Batcher& batcher() { return batcher_; }
  void replace(ServedModels models);  // running translations keep the old models
  void replace_keys(ApiKeys keys);    // for all later requests
  void drain() { draining_ = true; }  // /readyz returns 503 afterwards

 private:
  // A request, the exchange that answers it, and the state of the service when it arrived.
  struct RequestContext {
    HttpRequest request;
    std::shared_ptr<CountedExchange> exchange;
    ServedModels models = {};
    std::shared_ptr<const RequestParameters> parsed = nullptr;
    std::string client = {};  // the client for limits and fair queueing: "key K" or "address A"

    const RequestParameters& parameters();  // parsed once; throws HttpError 400
  };
  // An endpoint. A path that ends with '/' matches all paths below it.
  struct Route {
    const char* method;
    std::string_view path;
    void (Service::*handler)(RequestContext context);
    // key: needs a key if keys are required, and counts against rate limits. operators: needs a key
    // if there are keys, and has no rate limit.
    enum class Access { open, key, operators } access;
    enum class Cost {
      of_request,
      of_answer
    } cost = Cost::of_request;  // the time depends on its size
  };
  // A request to translate texts: the model, the options and, later, the documents.
  struct TranslateRequest {
    std::shared_ptr<const ServedModel> model;  // null: source and target are the same language
    std::string source, target;
    std::optional<DetectedLanguage> detected;
    std::vector<std::string> texts;
    bool is_list = false, html = false;
    int64_t alternatives = 0;  // the requested number
    int64_t n_best = 0;        // the requested number; 0: no list
    DecodeOptions decoding;
    std::vector<std::unique_ptr<TextDocument>> documents;
    std::optional<size_t> only = {};  // the only sentence to translate
    bool alone = false;               // shares no batch with other requests
    // Parameters with an intervention, to be parsed by read_intervention(); null: none.
    std::shared_ptr<const RequestParameters> intervention = {};
    std::vector<std::string> attention = {};  // JSON of each sentence, if requested
    size_t attention_bytes = 0;               // of all of these
    std::atomic<bool> too_large = false;      // more than kMaxAttentionBytes; answered
  };
  using TranslateRequestPtr = std::shared_ptr<TranslateRequest>;
  using Translations = std::vector<Translation>;
  // The translations of one text of the request.
  static std::span<const Translation> part(const TranslateRequest& request, const Translations& all,
                                           size_t text);

  static const std::vector<Route>& routes();
  // The routes of a request; null if there is none.
  struct RouteMatch {
    const Route* route = nullptr;
    const Route* path = nullptr;  // with this path and any method
    std::string endpoint() const { return std::string(route ? route->path : "other"); }
  };
  static RouteMatch find_route(const HttpRequest& request);
  static std::string description();  // of all endpoints: OpenAPI 3.0.3 (openapi.cpp)
  static std::string key_of(RequestContext& context);
  std::string address_of(const HttpRequest& request) const;  // as client_group() returns it
  const ApiKey* check_key(const HttpRequest& request, const ApiKeys& keys,
                          const std::string& given);
  // Identifies the client. Throws HttpError 400, 403 or 429 if the request is not allowed.
  void admit(RequestContext& context, Route::Access access);
  std::shared_ptr<const ApiKeys> keys() const;

  // Health and metrics (service.cpp).
  void health(RequestContext context);
  void alive(RequestContext context);
  void ready(RequestContext context);
  void metrics(RequestContext context);
  void openapi(RequestContext context);
  // The web page (web_page.cpp).
  void page(RequestContext context);
  void models(RequestContext context);
  // LibreTranslate (libretranslate_api.cpp, file_api.cpp).
  void translate(RequestContext context);
  void detect(RequestContext context);
  void languages(RequestContext context);
  void settings(RequestContext context);
  void suggest(RequestContext context);
  void translate_file(RequestContext context);
  void download_file(RequestContext context);
  // DeepL (deepl_api.cpp).
  void deepl_translate(RequestContext context);
  void deepl_languages(RequestContext context);
  // Fovea's own streaming (stream_api.cpp).
  void stream(RequestContext context);
  // Explanations of a model (explain_api.cpp) and its training history (training_api.cpp).
  void explain(RequestContext context);
  void positions(RequestContext context);
  void neighbours(RequestContext context);
  void training(RequestContext context);
  void trained_attention(RequestContext context);

  // translate_request.cpp
  static std::string answer_of(const TranslateRequest& request,
                               const Translations& all);  // of /translate
  static Json all_warnings(const TranslateRequest& request, const Translations& all);
  static std::string attention_of(const TranslateRequest& request);
  // Stores the attention of a translated sentence as JSON. False if the answer has just become too
  // large: the caller must answer the client, and the request is abandoned.
  static bool note_attention(TranslateRequest& request, const TranslationTask& task,
                             size_t sentence, Translation& translation);
  TranslateRequestPtr read_translate_request(const RequestContext& context,
                                             const RequestParameters& parameters) const;
  void choose_languages(TranslateRequest& request, const ServedModels& models,
                        const std::string& source, const std::string& target,
                        const std::string& model_name) const;
  void check_size(const std::vector<std::string>& texts) const;
  static PassageOptions document_options(const TranslateRequest& request);
  static void check_one_sentence(const TranslateRequest& request);
  static bool read_intervention(TranslateRequest& request, TranslationTask& task,
                                HttpExchange& exchange);
  std::shared_ptr<TranslationTask> task_for(const RequestContext& context,
                                            const TranslateRequestPtr& request) const;
  // Translates the request and answers with the result of `render`, which a worker thread calls.
  // Throws HttpError 429 if the queue is full.
  using Render =
      std::function<HttpReply(const TranslateRequest& request, const Translations& translations)>;
  void submit(const RequestContext& context, TranslateRequestPtr request, Render render);
  void enqueue(std::shared_ptr<TranslationTask> task);
  // The model for the parameters source, target and model. Throws HttpError 400 if there is none.
  std::shared_ptr<const ServedModel> model_of(const RequestContext& context,
                                              const RequestParameters& parameters) const;
  // Answers with the result of `make`, which a worker thread calls. The waiting task costs `cost`
  // tokens. If `make` throws an HttpError, that is the answer; an Error with ExitCode::usage is
  // answered with 400. Throws HttpError 429 if the queue is full.
  void compute(const RequestContext& context, int64_t cost, std::function<HttpReply()> make);
  void count(const Translations& translations);

  ServiceOptions options_;
  ServiceMetrics metrics_;  // must outlive the batcher, whose exchanges update it
  Batcher batcher_;
  FileStore store_;
  RateLimiter limiter_;
  KeyGuard guard_;
  mutable std::mutex mutex_;  // guards the two members below
  ServedModels models_;
  std::shared_ptr<const ApiKeys> keys_;
  std::atomic<bool> draining_{false};
};

// The cost of a computation that shares no batch, in tokens: it delays others about as long as this
// number of additional tokens in a batch.
inline constexpr int64_t kAloneCost = 64;

// A reply with the JSON as UTF-8. Replaces invalid bytes.
HttpReply json_reply(const nlohmann::ordered_json& value, int status = 200);
HttpReply error_reply(int status, const std::string& text);
std::vector<std::string> known_languages(const ServedModels& models);  // sorted codes

}  // namespace fovea

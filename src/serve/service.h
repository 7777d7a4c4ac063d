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

#include "serve/batcher.h"
#include "serve/counted_exchange.h"
#include "serve/engine.h"
#include "serve/file_store.h"
#include "serve/http.h"
#include "serve/keys.h"
#include "serve/metrics.h"
#include "serve/parameters.h"
#include "serve/passage.h"
#include "text/detector.h"

namespace fovea {

struct ServiceOptions {
  int64_t char_limit = 50'000;  // characters of a request; 0: no limit
  int64_t text_limit = 1'000;   // texts of a request
  int64_t most_alternatives = 15;
  int64_t requests_per_minute = 0;  // of a client without a key; 0: no limit
  int64_t proxies = 0;              // one behind the other before the service
  ApiKeys keys = {};                // at the start: see Service::replace_keys
  bool keys_required = false;
  bool files = true;
  bool log_requests = false;                  // a line each, without what it says and by whom
  std::chrono::milliseconds timeout{60'000};  // from question to answer
  Wish wish = {};                             // where a request does not say
  std::function<size_t()> connections = nullptr;
};

// Everything the service answers: LibreTranslate's contract with additions, DeepL's /v2/translate,
// health, figures. docs/serve.md describes each endpoint.
class Service {
 public:
  using Json = nlohmann::ordered_json;

  Service(ServiceOptions options, const BatcherOptions& batches, Engines engines);

  // The handler of a Server.
  void handle(Request request, std::shared_ptr<Exchange> exchange);
  // The answer to a request whose header names a wrong key; nothing if its body is to be read.
  std::optional<Reply> screen(const Request& head);
  // Whether the answer takes long however small the request is.
  static bool is_costly(const Request& head);
  void count_refused(int status);  // one that could not be read

  Batcher& batcher() { return batcher_; }
  void replace(Engines engines);      // running translations keep the old ones
  void replace_keys(ApiKeys keys);    // for all requests that come later
  void drain() { draining_ = true; }  // /readyz says so from now on

 private:
  struct Call {
    Request request;
    std::shared_ptr<CountedExchange> exchange;
    Engines engines = {};
    std::shared_ptr<const Parameters> parsed = nullptr;
    std::string client = {};  // for fair shares and limits: "key K" or "address A"

    const Parameters& parameters();  // read once; Refusal 400 where they cannot be
  };
  // Who may call what. A path that ends with '/' stands for everything below it.
  struct Route {
    const char* method;
    std::string_view path;
    void (Service::*act)(Call call);
    // Who may call it. key: needs a key if keys are required, and counts against rate limits.
    // operators: needs a key if there are keys, and is not limited.
    enum class Door { open, key, operators } door;
    enum class Cost { of_request, of_answer } cost = Cost::of_request;  // what it grows with
  };
  // Texts to be translated and what is known about them.
  struct Order {
    std::shared_ptr<const Engine> engine;  // null: source and target are the same language
    std::string source, target;
    std::optional<Detected> detected;
    std::vector<std::string> texts;
    bool is_list = false, html = false;
    int64_t alternatives = 0;  // that are asked for
    int64_t n_best = 0;        // of a list of them
    Wish wish;
    std::vector<std::unique_ptr<Passage>> passages;
    std::optional<size_t> only = {};                 // of all sentences this one alone
    bool alone = false;                              // no batch with others
    std::shared_ptr<const Parameters> changes = {};  // that ask what if; read into the wish late
    std::vector<std::string> attention = {};         // JSON of each sentence, if it is requested
    size_t attention_bytes = 0;                      // of all of these
    std::atomic<bool> too_large = false;             // more than kMaxAttentionBytes; was answered
  };
  using Orders = std::shared_ptr<Order>;
  using Translations = std::vector<Translation>;
  // The translations of one text of an order.
  static std::span<const Translation> part(const Order& order, const Translations& all,
                                           size_t text);

  static const std::vector<Route>& routes();
  struct Found {
    const Route* route = nullptr;
    const Route* path = nullptr;  // whatever the method
    std::string endpoint() const { return std::string(route ? route->path : "other"); }
  };
  static Found find(const Request& request);
  static std::string description();  // of every endpoint: OpenAPI 3.0.3 (openapi.cpp)
  static std::string key_of(Call& call);
  std::string address_of(const Request& request) const;  // a group: client_group()
  const ApiKey* check_key(const Request& request, const ApiKeys& keys, const std::string& given);
  // Identifies the client. Refusal 400, 403 or 429 if it may not ask, or not now.
  void admit(Call& call, Route::Door door);
  std::shared_ptr<const ApiKeys> keys() const;

  // Health and figures (service.cpp).
  void health(Call call);
  void alive(Call call);
  void ready(Call call);
  void metrics(Call call);
  void openapi(Call call);
  // The page (page.cpp).
  void page(Call call);
  void models(Call call);
  // LibreTranslate (libretranslate.cpp, files.cpp).
  void translate(Call call);
  void detect(Call call);
  void languages(Call call);
  void settings(Call call);
  void suggest(Call call);
  void translate_file(Call call);
  void download_file(Call call);
  // DeepL (deepl.cpp).
  void deepl_translate(Call call);
  void deepl_languages(Call call);
  // Ours (stream.cpp).
  void stream(Call call);
  // What is inside of a model (inside.cpp) and how it was trained (training.cpp).
  void explain(Call call);
  void positions(Call call);
  void neighbours(Call call);
  void training(Call call);
  void trained_attention(Call call);

  // order.cpp
  static std::string answer_of(const Order& order, const Translations& all);  // of /translate
  static Json all_warnings(const Order& order);
  static std::string attention_of(const Order& order);
  // Keeps the attention of a sentence of the order as soon as it is translated. False if the
  // answer has just become too large: the caller tells the client, and the order is given up.
  static bool note_attention(Order& order, const Task& task, size_t sentence,
                             Translation& translation);
  Orders read_order(const Call& call, const Parameters& parameters) const;
  void choose_languages(Order& order, const Engines& engines, const std::string& source,
                        const std::string& target, const std::string& model) const;
  void check_size(const std::vector<std::string>& texts) const;
  static PassageOptions passage_options(const Order& order);
  static void check_one_sentence(const Order& order);
  static bool read_changes(Order& order, Task& task, Exchange& exchange);
  std::shared_ptr<Task> task_for(const Call& call, const Orders& order) const;
  // Answers with what `render` makes of the translations, on a thread of the batcher. Refusal
  // 429 where too much is waiting.
  using Render = std::function<Reply(const Order& order, const Translations& translations)>;
  void submit(const Call& call, Orders order, Render render);
  void enqueue(std::shared_ptr<Task> task);
  // The model that a request names by source, target and model; Refusal 400 where there is none.
  std::shared_ptr<const Engine> engine_of(const Call& call, const Parameters& parameters) const;
  // Answers with what `make` returns, on a thread of the batcher, when its turn comes; what waits
  // for that counts for `cost` tokens. Its Refusals are answers, and an Error that is the request's
  // fault is a Refusal 400. Refusal 429 where too much is waiting.
  void compute(const Call& call, int64_t cost, std::function<Reply()> make);
  void count(const Translations& translations);

  ServiceOptions options_;
  ServiceMetrics metrics_;  // before the batcher, whose exchanges count when they end
  Batcher batcher_;
  FileStore store_;
  RateLimiter limiter_;
  KeyGuard guard_;
  mutable std::mutex mutex_;  // of the two below
  Engines engines_;
  std::shared_ptr<const ApiKeys> keys_;
  std::atomic<bool> draining_{false};
};

// Tokens that a turn alone counts for: it holds up others about as long as so many more in a batch.
inline constexpr int64_t kTurnAlone = 64;

// JSON as UTF-8, whatever bytes it holds.
Reply json_reply(const nlohmann::ordered_json& value, int status = 200);
Reply error_reply(int status, const std::string& text);
std::vector<std::string> known_languages(const Engines& engines);  // codes, sorted

}  // namespace fovea

#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "serve/batcher.h"
#include "serve/translate_request.h"

namespace fovea {

// The cost of a computation that shares no batch. It delays other requests for about as long as
// this number of additional tokens in a batch.
inline constexpr int64_t kAloneCost = 64;

// The queue of requests that worker threads answer. It makes them tasks of the batcher.
// Thread-safe. Tasks refer to it, so it must outlive the last call of Batcher::work().
class TranslationQueue {
 public:
  TranslationQueue(Batcher& batcher, ServiceMetrics& metrics, std::chrono::milliseconds timeout)
      : batcher_(batcher), metrics_(metrics), timeout_(timeout) {}

  // Translates the request and answers with the result of `render`, which a worker thread calls.
  // Without a model, answers at once. Throws HttpError 429 if the queue is full.
  using Render = std::function<HttpReply(const TranslateRequest& request,
                                         const TranslationList& translations)>;
  void submit(const RequestContext& context, TranslateRequestPtr request, Render render);
  // Answers with the result of `make`, which a worker thread calls. The waiting task costs `cost`
  // tokens. If `make` throws an HttpError, that is the answer; an Error with ExitCode::usage is
  // answered with 400. Throws HttpError 429 if the queue is full.
  void compute(const RequestContext& context, int64_t cost, std::function<HttpReply()> make);

  // Returns the task of a request. The caller sets its callbacks and calls add(). Both functions
  // throw HttpError 429 if the queue is full.
  std::shared_ptr<TranslationTask> task_for(const RequestContext& context,
                                            const TranslateRequestPtr& request) const;
  void add(std::shared_ptr<TranslationTask> task);
  void count(const TranslationList& translations);  // adds them to the metrics

 private:
  std::shared_ptr<TranslationTask> new_task(const RequestContext& context, int64_t cost) const;

  Batcher& batcher_;
  ServiceMetrics& metrics_;
  std::chrono::milliseconds timeout_;
};

}  // namespace fovea

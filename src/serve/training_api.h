#pragma once

#include "serve/translation_queue.h"

namespace fovea {

// The endpoints of the training history of a model: its curves, and the attention of a sentence
// pair after each saved update. Thread-safe.
class TrainingApi {
 public:
  TrainingApi(const RequestLimits& limits, TranslationQueue& queue)
      : limits_(limits), queue_(queue) {}
  std::vector<Route> routes();

 private:
  void curves(RequestContext& context);
  void attention(RequestContext& context);

  const RequestLimits& limits_;
  TranslationQueue& queue_;
};

}  // namespace fovea

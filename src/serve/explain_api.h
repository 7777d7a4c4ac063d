#pragma once

#include "serve/translation_queue.h"

namespace fovea {

// The content of a model: one row of attention number by number, its positions, its words. Thread-
// safe.
class ExplainApi {
 public:
  ExplainApi(const RequestLimits& limits, TranslationQueue& queue)
      : limits_(limits), queue_(queue) {}
  std::vector<Route> routes();

 private:
  void explain(RequestContext& context);
  void positions(RequestContext& context);
  void neighbours(RequestContext& context);

  const RequestLimits& limits_;
  TranslationQueue& queue_;
};

}  // namespace fovea

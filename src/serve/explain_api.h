#pragma once

#include "serve/translation_queue.h"

namespace fovea {

// The endpoints that show the inside of a model: the computation of one row of attention, its
// positions, the neighbours of words. Thread-safe.
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

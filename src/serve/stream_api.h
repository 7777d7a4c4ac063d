#pragma once

#include "serve/translation_queue.h"

namespace fovea {

// The streaming endpoint: words and sentences as server-sent events. Thread-safe.
class StreamApi {
 public:
  StreamApi(const RequestLimits& limits, TranslationQueue& queue)
      : limits_(limits), queue_(queue) {}
  std::vector<Route> routes();

 private:
  void stream(RequestContext& context);

  const RequestLimits& limits_;
  TranslationQueue& queue_;
};

}  // namespace fovea

#pragma once

#include "serve/translation_queue.h"

namespace fovea {

// The part of DeepL's API that translates texts, for programs that were written for DeepL. Thread-
// safe.
class DeepLApi {
 public:
  DeepLApi(const RequestLimits& limits, TranslationQueue& queue) : limits_(limits), queue_(queue) {}
  std::vector<Route> routes();

 private:
  void translate(RequestContext& context);

  const RequestLimits& limits_;
  TranslationQueue& queue_;
};

}  // namespace fovea

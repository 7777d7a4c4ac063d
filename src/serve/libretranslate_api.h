#pragma once

#include "serve/access_control.h"
#include "serve/translation_queue.h"

namespace fovea {

// The endpoints of LibreTranslate with Fovea's additions, except those for files. Thread-safe.
class LibreTranslateApi {
 public:
  LibreTranslateApi(const RequestLimits& limits, const AccessControl& access,
                    TranslationQueue& queue, bool files)
      : limits_(limits), access_(access), queue_(queue), files_(files) {}
  std::vector<Route> routes();

 private:
  void translate(RequestContext& context);
  void detect(RequestContext& context) const;
  void settings(RequestContext& context) const;

  const RequestLimits& limits_;
  const AccessControl& access_;
  TranslationQueue& queue_;
  bool files_;  // whether the service translates files
};

}  // namespace fovea

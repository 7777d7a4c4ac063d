#pragma once

#include "serve/file_store.h"
#include "serve/translation_queue.h"

namespace fovea {

// The endpoints of LibreTranslate for files: they translate files and keep the results for
// download. Thread-safe.
class FileApi {
 public:
  FileApi(const RequestLimits& limits, TranslationQueue& queue, bool enabled)
      : limits_(limits), queue_(queue), enabled_(enabled) {}
  std::vector<Route> routes();

 private:
  void translate(RequestContext& context);
  void download(RequestContext& context);

  const RequestLimits& limits_;
  TranslationQueue& queue_;
  bool enabled_;
  FileStore store_;
};

}  // namespace fovea

#include "serve/source_language.h"

#include <fmt/format.h>

#include <algorithm>

#include "http/http_error.h"
#include "text/language.h"

namespace fovea {

DetectedLanguage source_language(std::string_view text, const ServedModels& models,
                                 const std::string& target) {
  const std::vector<std::string> known = known_languages(models);
  const std::vector<DetectedLanguage> found = detect_language(text);
  for (const DetectedLanguage& d : found)
    if (std::ranges::find(known, d.language) != known.end() && d.confidence > 0) {
      if (d.confidence >= kGuess || found.front().confidence < kCertain) return d;
      break;
    }
  const DetectedLanguage first = sure_language(found);
  for (const std::string& code : known)
    if (same_language(code, first.language)) return {code, first.confidence};
  if (first.confidence >= kCertain)
    throw HttpError(400,
                    fmt::format("{} ({}) is not supported: the text is in this language with a "
                                "confidence of {}; set source to another language, or load a "
                                "model for it",
                                language_name(first.language), first.language, first.confidence));
  for (const auto& model : models)
    if (model->target() == target) return {model->source(), 0};
  return {target, 0};
}

}  // namespace fovea

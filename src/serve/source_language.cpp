#include "serve/source_language.h"

#include <fmt/format.h>

#include <algorithm>

#include "serve/refusal.h"
#include "serve/service.h"
#include "text/language.h"

namespace fovea {

Detected source_language(std::string_view text, const Engines& engines, const std::string& target) {
  const std::vector<std::string> known = known_languages(engines);
  const std::vector<Detected> found = detect_language(text);
  for (const Detected& d : found)
    if (std::ranges::find(known, d.language) != known.end() && d.confidence > 0) {
      if (d.confidence >= kGuess || found.front().confidence < kCertain) return d;
      break;
    }
  const Detected first = sure_language(found);
  for (const std::string& code : known)
    if (same_language(code, first.language)) return {code, first.confidence};
  if (first.confidence >= kCertain)
    throw Refusal(400,
                  fmt::format("{} ({}) is not supported: the text is in this language with a "
                              "confidence of {}; name another with source, or load a model "
                              "that reads it",
                              language_name(first.language), first.language, first.confidence));
  for (const auto& engine : engines)
    if (engine->target() == target) return {engine->source(), 0};
  return {target, 0};
}

}  // namespace fovea

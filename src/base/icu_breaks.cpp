#include "base/icu_breaks.h"

#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <memory>

namespace fovea {

std::unique_ptr<icu::BreakIterator> icu_rules(icu::BreakIterator* (*create)(const icu::Locale&,
                                                                            UErrorCode&)) {
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::BreakIterator> rules(create(icu::Locale::getRoot(), status));
  if (U_FAILURE(status)) rules.reset();
  return rules;
}

std::vector<size_t> icu_breaks(icu::BreakIterator* rules, std::string_view text) {
  std::vector<size_t> ends;
  if (!rules) return ends;
  UErrorCode status = U_ZERO_ERROR;
  UText* const opened =
      utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status);
  if (U_SUCCESS(status)) rules->setText(opened, status);
  if (U_SUCCESS(status)) {
    rules->first();
    for (int32_t at = rules->next(); at != icu::BreakIterator::DONE; at = rules->next())
      ends.push_back(static_cast<size_t>(at));
  }
  utext_close(opened);
  return ends;
}

std::vector<size_t> grapheme_ends(std::string_view text) {
  thread_local const auto rules = icu_rules(icu::BreakIterator::createCharacterInstance);
  return icu_breaks(rules.get(), text);
}

}  // namespace fovea

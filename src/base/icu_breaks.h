#pragma once

#include <unicode/utypes.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

U_NAMESPACE_BEGIN
class BreakIterator;
class Locale;
U_NAMESPACE_END

namespace fovea {

// Creates rules for the text of all languages, for example by BreakIterator::createWordInstance;
// null if ICU cannot. This takes milliseconds, so each thread should keep its own.
std::unique_ptr<icu::BreakIterator> icu_rules(icu::BreakIterator* (*create)(const icu::Locale&,
                                                                            UErrorCode&));

// Returns all boundaries of a text in bytes, without its beginning; the last one is its end. Empty
// if `rules` is null, because ICU could not create them, or if ICU fails.
std::vector<size_t> icu_breaks(icu::BreakIterator* rules, std::string_view text);

// Returns the ends of the graphemes of a text: a letter with its marks, an emoji sequence.
std::vector<size_t> grapheme_ends(std::string_view text);

}  // namespace fovea

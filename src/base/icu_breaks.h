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

// Creates language-independent rules by `create`, for example by BreakIterator::createWordInstance.
// Returns null if ICU cannot create them. The call takes milliseconds, so each thread should keep
// its own rules.
std::unique_ptr<icu::BreakIterator> icu_rules(icu::BreakIterator* (*create)(const icu::Locale&,
                                                                            UErrorCode&));

// Returns the byte offsets of all boundaries of a text, except 0. The last offset is the end of the
// text. The result is empty if `rules` is null (see icu_rules()) or if ICU fails.
std::vector<size_t> icu_breaks(icu::BreakIterator* rules, std::string_view text);

// Returns the byte offsets at which the graphemes of a text end. A grapheme is, for example, a
// letter with its marks or an emoji sequence.
std::vector<size_t> grapheme_ends(std::string_view text);

}  // namespace fovea

#pragma once

#include <unicode/utypes.h>

#include <cstddef>
#include <string_view>
#include <vector>

U_NAMESPACE_BEGIN
class BreakIterator;
U_NAMESPACE_END

namespace fovea {

// All boundaries of a text but its beginning, so that its end is the last of them. None if `rules`
// is null, which is where ICU could not make them.
std::vector<size_t> icu_breaks(icu::BreakIterator* rules, std::string_view text);

}  // namespace fovea

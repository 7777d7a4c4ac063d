#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "document/html_span.h"

namespace fovea {

// Splits the translation of a word as `parts` split the word in `text`. Example: "one/two." with
// two links is translated as "eins/zwei.". Parts that occur unchanged in the translation, such as
// punctuation, are matched. The text between them is assigned to the parts in between. The
// concatenated result is the translation.
std::vector<HtmlPart> split_like(std::span<const HtmlPart> parts, std::string_view text,
                                 std::string_view translation);

}  // namespace fovea

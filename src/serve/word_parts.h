#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "serve/html_run.h"

namespace fovea {

// The translation of a word, cut as `parts` cut the word in `text`: "one/two." of two links and
// signs, translated as "eins/zwei.". Signs and whatever was not translated are found again; what
// stands between them goes to the parts that were there. The stretches together are the
// translation.
std::vector<HtmlPart> cut_like(std::span<const HtmlPart> parts, std::string_view text,
                               std::string_view translation);

}  // namespace fovea

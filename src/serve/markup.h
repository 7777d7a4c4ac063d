#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// HTML cut at its tags. The tokens together are the text; whatever is no tag is text, so that
// nothing can be malformed.
struct MarkupToken {
  enum class Kind {
    text,     // to be translated
    opening,  // <b class="x">
    closing,  // </b>
    lone,     // what is inside a sentence without words: <img>, <x/>, &unknown;
    fixed,    // stays as it is and ends a sentence: <p>, comments, scripts with their content
  };
  Kind kind;
  std::string_view bytes;
  std::string name = {};  // of a tag, in lower case
};

std::vector<MarkupToken> cut_markup(std::string_view html);

// What a reader reads of it: without tags, entities, scripts and styles; line ends where sentences
// end.
std::string text_of_markup(std::string_view html);

}  // namespace fovea

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A part of HTML and what translation does with it. The tokens of a document together are its
// bytes.
struct MarkupToken {
  enum class Kind {
    text,     // to be translated
    opening,  // <b class="x">
    closing,  // </b>
    lone,     // has no words and moves with the words beside it: <img>, &unknown;
    fixed,    // stays as it is and ends a sentence: <p>, comments, scripts with their content
  };
  Kind kind;
  std::string_view bytes;
  std::string name = {};  // of a tag, in lower case
};

// Takes time proportional to the size.
std::vector<MarkupToken> cut_markup(std::string_view html);

// What a reader reads of it: without tags, entities, scripts and styles; line ends where sentences
// end.
std::string text_of_markup(std::string_view html);

}  // namespace fovea

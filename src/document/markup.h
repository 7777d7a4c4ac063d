#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A token of HTML, classified by how translation treats it. The concatenated bytes of all tokens
// are the document.
struct MarkupToken {
  enum class Kind {
    text,     // is translated
    opening,  // <b class="x">
    closing,  // </b>
    lone,     // has no words and moves with its neighbouring words: <img>, &unknown;
    fixed,    // is copied unchanged and ends a sentence: <p>, comments, scripts with their content
  };
  Kind kind;
  std::string_view bytes;
  std::string name = {};  // of a tag, in lower case
};

// Splits HTML into tokens. Takes time proportional to its size.
std::vector<MarkupToken> cut_markup(std::string_view html);

// Returns the visible text of a document: without tags, scripts and styles, and with references
// decoded. Fixed tokens become line ends.
std::string text_of_markup(std::string_view html);

}  // namespace fovea

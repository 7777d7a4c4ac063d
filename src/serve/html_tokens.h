#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// One token of HTML, cut where the tokenizer of the HTML standard cuts it (13.2.5).
struct HtmlToken {
  enum class Kind {
    text,       // characters and references; a '<' in it is a character
    start_tag,  // <b class="x">
    end_tag,    // </b>
    opaque,     // no text and no tag: comments, doctypes, CDATA sections, content of <script>
  };
  Kind kind;
  std::string_view bytes;
  std::string name = {};            // of a tag, in lower case
  bool self_closing = false;        // <b/>, which HTML reads as <b>
  bool translate_no = false;        // it has translate="no"
  bool in_certain_context = false;  // Note [Certain context]
};

// The tokens of `html`, whose bytes together are `html`. Takes time proportional to its size.
std::vector<HtmlToken> html_tokens(std::string_view html);

}  // namespace fovea

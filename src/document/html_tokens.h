#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A token of HTML. It begins and ends where the tokenizer of the HTML standard (13.2.5) says.
struct HtmlToken {
  enum class Kind {
    text,       // characters and references; a '<' in it is a literal character
    start_tag,  // <b class="x">
    end_tag,    // </b>
    opaque,     // neither text nor tag: comments, doctypes, CDATA sections, content of <script>
  };
  Kind kind;
  std::string_view bytes;
  std::string name = {};            // of a tag, in lower case
  bool self_closing = false;        // <b/>, which HTML reads as <b>
  bool translate_no = false;        // the tag has translate="no"
  bool in_certain_context = false;  // see Note [Certain context]
};

// Splits `html` into tokens. Their concatenated bytes are `html`. Takes time proportional to its
// size.
std::vector<HtmlToken> html_tokens(std::string_view html);

}  // namespace fovea

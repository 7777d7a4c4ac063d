#pragma once

#include <string>
#include <string_view>

namespace fovea {

// A character reference of HTML: &amp;, &#228; or &#xE4;. As in browsers, some names such as
// &eacute need no semicolon.
struct CharacterReference {
  size_t length = 0;      // in bytes; 0: the text at & is not a reference
  std::string text = {};  // the characters; empty if the reference is unknown
};
CharacterReference reference_at(std::string_view html);  // REQUIRES: html begins with &

// Replaces references by their characters: &amp; → &, &#228; → ä. Keeps unknown references.
std::string without_entities(std::string_view html);
// Replaces < and > by references. AmpersandMode::escaped also replaces &. AmpersandMode::kept keeps
// &, so the text may contain references.
enum class AmpersandMode { escaped, kept };
std::string with_entities(std::string_view text, AmpersandMode which = AmpersandMode::escaped);

// The content of src/document/html_entities.txt; cmake/embed.cmake compiles it into the program.
std::string_view html_entities();

}  // namespace fovea

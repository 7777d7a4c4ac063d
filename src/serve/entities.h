#pragma once

#include <string>
#include <string_view>

namespace fovea {

// A character reference of HTML: &amp; or &#228; or &#xE4; and, as browsers read it, &eacute
// without its end.
struct Reference {
  size_t length = 0;      // in bytes; 0: what begins with & is none
  std::string text = {};  // what it stands for; empty: nobody knows
};
Reference reference_at(std::string_view html);  // REQUIRES: it begins with &

std::string without_entities(std::string_view html);  // &amp; → &, &#228; → ä; unknown ones stay
// < and > as references, and & unless the text has references already.
enum class Ampersands { escaped, kept };
std::string with_entities(std::string_view text, Ampersands which = Ampersands::escaped);

// "name text name text … " with a blank behind each, sorted by name.
extern const std::string_view kEntityNames;

}  // namespace fovea

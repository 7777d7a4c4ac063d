#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace fovea {

// One leaf of a YAML document: its keys joined by '.', and its value. An empty map, `{}`, has the
// kind null.
struct YamlEntry {
  enum class Kind { scalar, list, null };
  std::string path;
  int64_t line;
  Kind kind;
  std::vector<std::string> items;  // the items of a list, or the one value of a scalar
};

// Returns the leaves of a document of nested maps, in order. Throws an Error with `code`, `source`
// and the line in these cases: bad syntax or UTF-8, a duplicate key, a second document, a list with
// an item that is not a scalar, nesting beyond `max_depth`. Refuses anchors and aliases, because a
// few lines of them can expand to gigabytes.
std::vector<YamlEntry> read_yaml(std::string_view text, const std::string& source, ExitCode code,
                                 int max_depth);

// A string as a YAML scalar: without quotes if that is safe, otherwise in double quotes.
std::string yaml_string(std::string_view text);

}  // namespace fovea

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

// A field of a form. Only files have a file name.
struct FormField {
  std::string name, value;
  std::string file_name = {};
  bool is_file = false;
};

// Decodes escapes such as %41, and + as a space. Keeps invalid escapes unchanged.
std::string percent_decoded(std::string_view text);

// Parses "a=1&b=2", a query or a body of type application/x-www-form-urlencoded.
std::vector<FormField> parse_urlencoded(std::string_view text);

// Parses a body of multipart/form-data; `type` is the Content-Type with its boundary. Throws
// HttpError 400 if the body is damaged.
std::vector<FormField> parse_multipart(std::string_view body, std::string_view type);

}  // namespace fovea

#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

// One part of a form. Only a file has a file name.
struct FormField {
  std::string name, value;
  std::string file_name = {};
  bool is_file = false;
};

// %41 and, where asked, + as a blank. What is no valid escape stays as it is written.
enum class Plus { blank, itself };
std::string percent_decoded(std::string_view text, Plus plus);

// "a=1&b=2", as in a query or a body of application/x-www-form-urlencoded.
std::vector<FormField> parse_urlencoded(std::string_view text);

// A body of multipart/form-data; `type` is the Content-Type with its boundary. Refusal 400 where
// it is damaged.
std::vector<FormField> parse_multipart(std::string_view body, std::string_view type);

}  // namespace fovea

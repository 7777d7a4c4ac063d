#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/form.h"
#include "serve/http.h"

namespace fovea {

// JSON text within limits of depth and number of values: nothing where it is damaged.
std::optional<nlohmann::json> parse_json(std::string_view text);

// What a request asks for, however it is written: a JSON object, a form, the query. Numbers may be
// given as strings. Everything that cannot be used is a Refusal 400 that names the field.
class Parameters {
 public:
  explicit Parameters(const Request& request);

  bool has(std::string_view name) const;
  // Absent, null and "": nothing. A form may give a name several times: the first counts.
  std::optional<std::string> text(std::string_view name) const;
  // A string or, in JSON, a list of strings; a form may give the name several times.
  struct Texts {
    std::vector<std::string> values;
    bool is_list = false;
  };
  std::optional<Texts> texts(std::string_view name) const;
  // A list as JSON, in a form as its text; empty where it is absent.
  nlohmann::json list(std::string_view name) const;
  bool flag(std::string_view name) const;  // false where it is absent
  struct Range {
    double low, high;
  };
  std::optional<int64_t> integer(std::string_view name, Range range) const;
  std::optional<double> number(std::string_view name, Range range) const;
  const FormField* file(std::string_view name) const;

 private:
  const nlohmann::json* value(std::string_view name) const;

  nlohmann::json object_ = nlohmann::json::object();
  std::vector<FormField> files_;
  bool is_form_ = false;
};

}  // namespace fovea

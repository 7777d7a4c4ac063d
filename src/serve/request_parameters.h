#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/form.h"
#include "http/http.h"

namespace fovea {

// Parses JSON within limits of depth and number of values. Returns nullopt if it is invalid or
// exceeds them.
std::optional<nlohmann::json> parse_json(std::string_view text);

// The parameters of a request from a JSON object, a form or the query. Numbers may be given as
// strings. Throws HttpError 400 with the name of the field if a value is invalid.
class RequestParameters {
 public:
  explicit RequestParameters(const HttpRequest& request);

  bool has(std::string_view name) const;
  // Returns nullopt if the parameter is absent, null or "". If a form contains a name several
  // times, the first one counts.
  std::optional<std::string> text(std::string_view name) const;
  // A string or, in JSON, a list of strings. A form may contain the name several times.
  struct Texts {
    std::vector<std::string> values;
    bool is_list = false;
  };
  std::optional<Texts> texts(std::string_view name) const;
  // Returns a list as JSON. In a form the parameter is the text of the JSON. The result is empty if
  // the parameter is absent.
  nlohmann::json list(std::string_view name) const;
  bool flag(std::string_view name) const;  // false if absent
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

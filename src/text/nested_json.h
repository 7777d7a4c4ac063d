#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fovea {

// The value of a JSON text from another program. Throws ExitCode::model if the text is not JSON in
// UTF-8, or has more than 32 levels. If a key occurs twice, the last value counts, as in Python.
nlohmann::json read_nested_json(std::string_view json, const std::string& name);

}  // namespace fovea

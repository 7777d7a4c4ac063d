#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace fovea {

// One key and value of a message in the json format.
struct LogField {
  std::string_view name;
  std::variant<int64_t, double, std::string> value;
};

// Logs a message at level info. In the json format, the message is `event`, and each field is a
// member of the JSON object. In the other formats, the message is `text`.
void log_event(std::string_view event, std::span<const LogField> fields, std::string_view text);

}  // namespace fovea

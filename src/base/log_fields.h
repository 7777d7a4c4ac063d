#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace fovea {

// One member of a message in the json format.
struct LogField {
  std::string_view name;
  std::variant<int64_t, double, std::string> value;
};

// A message at level info. The json format writes `event` as the message and each field as a member
// of the object; the other formats write `text`.
void log_event(std::string_view event, std::span<const LogField> fields, std::string_view text);

}  // namespace fovea

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "http/http.h"

namespace fovea {

// Returns JSON as UTF-8 text. Replaces invalid bytes.
inline std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

inline HttpReply json_reply(const nlohmann::ordered_json& value, int status = 200) {
  return {.status = status, .body = json_text(value)};
}

inline HttpReply error_reply(int status, const std::string& text) {
  return json_reply({{"error", text}}, status);
}

}  // namespace fovea

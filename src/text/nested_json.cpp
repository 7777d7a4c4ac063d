#include "text/nested_json.h"

#include "base/check.h"

namespace fovea {

nlohmann::json read_nested_json(std::string_view json, const std::string& name) {
  constexpr int kMaxDepth = 32;
  const size_t nul = json.find('\0');
  check(nul == json.npos, ExitCode::model, name, ": byte ", nul, ": a NUL byte in the JSON");
  const auto limit_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    check(depth <= kMaxDepth, ExitCode::model, name, ": more than ", kMaxDepth,
          " levels of JSON; use the file that belongs to the model");
    return true;
  };
  try {
    return nlohmann::json::parse(json.begin(), json.end(), limit_depth);
  } catch (const nlohmann::json::exception& e) {
    fail(ExitCode::model, name, ": the file is not JSON: ", e.what(),
         "; use the file that belongs to the model");
  }
}

}  // namespace fovea

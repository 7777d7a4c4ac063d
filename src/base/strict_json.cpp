#include "base/strict_json.h"

#include <algorithm>

#include "base/utf8.h"

namespace fovea {

bool StrictJson::parse_error(size_t position, const std::string&,
                             const nlohmann::json::exception& e) {
  const std::string_view text = e.what();
  const size_t colon = text.find(": ", text.find("column"));
  fail(ExitCode::model, path_, ": byte ", offset_ + position - std::min<size_t>(position, 1), ": ",
       what_, " is not valid JSON: ",
       printable(text.substr(colon == std::string_view::npos ? 0 : colon + 2), 120));
}

void StrictJson::read(std::string_view json) {
  // nlohmann treats a NUL as the end of the text and skips a byte order mark.
  const size_t nul = json.find('\0');
  check(nul == std::string_view::npos, ExitCode::model, path_, ": byte ", offset_ + nul,
        ": a NUL byte in the JSON");
  check(!json.starts_with("\xEF\xBB\xBF"), ExitCode::model, path_, ": byte ", offset_,
        ": a byte order mark before the JSON");
  nlohmann::json::sax_parse(json, this);
}

}  // namespace fovea

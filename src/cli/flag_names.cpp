#include "cli/flag_names.h"

#include <algorithm>

#include "base/ascii.h"

namespace fovea {
namespace {

// The fields that messages of the library may name. The flag of a field has the same name, with
// hyphens instead of underscores.
constexpr std::string_view kFields =
    " adapter allow_host api_keys at_once bad_utf8 batch_tokens beam coverage_penalty data device "
    "dump_config explain force from gold_from head host kind layer length_penalty mask mask_head "
    "max_length max_length_factor min_count min_length n_best no_repeat_ngram only png port rate "
    "require_api_key restart resume_anyway run set svg temperature to top_k top_p workers "
    "workspace ";

// Returns the flag of a field, or "" if there is no field with this name.
std::string flag_of(std::string_view name) {
  if (name == "config") return "-c";
  if (name == "model") return "-m";
  if (name == "output") return "-o";
  std::string flag(name);
  if (name.find(' ') != name.npos || !list_has(kFields, name)) return "";
  std::ranges::replace(flag, '_', '-');
  return "--" + flag;
}

}  // namespace

std::string with_flags(std::string_view message) {
  std::string text;
  for (;;) {
    const size_t begin = message.find('`');
    const size_t end = begin == message.npos ? begin : message.find('`', begin + 1);
    if (end == message.npos) return text.append(message);
    const std::string flag = flag_of(message.substr(begin + 1, end - begin - 1));
    // After an unknown name, its closing backquote may open the next one.
    const size_t next = flag.empty() ? end : end + 1;
    text.append(message.substr(0, flag.empty() ? end : begin)).append(flag);
    message.remove_prefix(next);
  }
}

}  // namespace fovea

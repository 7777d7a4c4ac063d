#pragma once

#include <string>
#include <string_view>

namespace fovea {

// A function that rewrites each message before it is logged. If it is null, messages are not
// rewritten. Set it before other threads log.
using LogWording = std::string (*)(std::string_view message);
void set_log_wording(LogWording wording);

}  // namespace fovea

#pragma once

#include <string>
#include <string_view>

namespace fovea {

// Sets a function that rewrites each message before it is logged. Null: messages are not rewritten.
// Call it before other threads log.
using LogWording = std::string (*)(std::string_view message);
void set_log_wording(LogWording wording);

}  // namespace fovea

#pragma once

#include <string_view>

namespace fovea {

// The content of src/text/language_profiles.txt; cmake/embed.cmake compiles it into the program.
std::string_view language_profiles();

}  // namespace fovea

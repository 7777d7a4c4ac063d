#pragma once

#include <string_view>

namespace fovea {

// The file src/text/language_profiles.txt, which cmake/profiles.cmake makes part of the program.
std::string_view language_profiles();

}  // namespace fovea

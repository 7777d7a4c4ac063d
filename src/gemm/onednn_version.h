#pragma once

#include <string>

namespace fovea::kernel {

// The version of the oneDNN library in use, such as "2.6.3".
std::string onednn_version();

}  // namespace fovea::kernel

#pragma once

#include <string>

namespace fovea {

// A picture that Drawing::finish has made, as the bytes of a PNG file with `scale` pixels for each
// of its own, fewer where more than 32,000 in a row would be needed. It is painted by librsvg,
// which is loaded for it: Exit::files where this system has none, Exit::memory where there is no
// memory for that many pixels.
std::string png_of(const std::string& svg, double scale = 2);

}  // namespace fovea

#pragma once

#include <string>

namespace fovea {

// Renders a picture of Drawing::finish() as the bytes of a PNG file with `scale` pixels per SVG
// unit, or with fewer if a side would exceed 32,000 pixels. Loads librsvg. Throws ExitCode::files
// if the system has no librsvg, ExitCode::memory if the memory does not suffice.
std::string png_of(const std::string& svg, double scale = 2);

}  // namespace fovea

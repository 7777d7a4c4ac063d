#pragma once

#include <string>

namespace fovea {

// Renders a picture of Drawing::finish() and returns the bytes of a PNG file. The file has `scale`
// pixels per SVG unit, or fewer if a side would exceed 32,000 pixels. Loads librsvg. If the system
// has no librsvg, throws ExitCode::files; if there is too little memory, ExitCode::memory.
std::string png_of(const std::string& svg, double scale = 2);

}  // namespace fovea

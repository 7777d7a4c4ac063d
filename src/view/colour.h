#pragma once

#include <cstdint>

namespace fovea {

struct Colour {
  uint8_t red, green, blue;
};

constexpr int kColourSteps = 64;

// Returns the colour of a weight at `step` / kColourSteps of the scale. On a light background
// colours go from white to dark blue, on a dark background from near black to light blue. The
// perceived contrast grows evenly.
Colour scale_colour(int step, bool dark_ground);

// Returns the number of the closest colour, in hue and brightness, in the 256-colour palette of
// older terminals.
int indexed_colour(int step, bool dark_ground);

// Returns the colour of readable text on the background colour `ground`: near black or white.
Colour ink_on(Colour ground);

// Returns the step of a weight on a scale from 0 to `top`. It is positive if the weight rounds to
// at least 0.01.
int scale_step(float weight, float top);

}  // namespace fovea

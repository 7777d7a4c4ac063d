#pragma once

#include <cstdint>

namespace fovea {

struct Colour {
  uint8_t red, green, blue;
};

constexpr int kColourSteps = 64;

// Returns the colour of a weight at `step` / kColourSteps of the colour scale. On a light
// background, colours go from white to dark blue; on a dark background, from near black to light
// blue. Equal steps look equally different.
Colour scale_colour(int step, bool dark_ground);

// Returns the number of the colour of this step in the 256-colour palette of older terminals. It is
// the closest colour in hue and brightness.
int indexed_colour(int step, bool dark_ground);

// Returns the colour of text that is readable on the background `ground`: near black or white.
Colour ink_on(Colour ground);

// Returns the step of a weight on a colour scale from 0 to `top`. If the weight rounds to at least
// 0.01, the step is positive.
int scale_step(float weight, float top);

}  // namespace fovea

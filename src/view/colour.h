#pragma once

#include <cstdint>

namespace fovea {

struct Colour {
  uint8_t red, green, blue;
};

constexpr int kColourSteps = 64;

// The colour of a weight of `step` / kColourSteps of the scale. On a light background: white to
// dark blue; on a dark background: near black to light blue. The perceived contrast grows evenly.
Colour scale_colour(int step, bool dark_ground);

// The colour of the 256-colour palette of older terminals that is closest in hue and brightness.
int indexed_colour(int step, bool dark_ground);

// The colour of readable text on `ground`: near black or white.
Colour ink_on(Colour ground);

// The step of a weight on a scale up to `top`. It is positive for a weight that rounds to at least
// 0.01.
int scale_step(float weight, float top);

}  // namespace fovea

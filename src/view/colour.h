#pragma once

#include <cstdint>

namespace fovea {

struct Colour {
  uint8_t red, green, blue;
};

constexpr int kColourSteps = 64;

// What a weight of `step` / kColourSteps of the scale is painted with. On a light ground: white to
// dark blue; on a dark ground: near black to light blue. Both grow evenly in perceived contrast.
Colour scale_colour(int step, bool dark_ground);

// The nearest to it in hue and brightness among the 256 colours of older terminals.
int indexed_colour(int step, bool dark_ground);

// The colour that text on `ground` is readable in: near black or white.
Colour ink_on(Colour ground);

// The step of a weight on a scale that ends at `top`; never 0 for a weight that rounds to ≥ 0.01.
int scale_step(float weight, float top);

}  // namespace fovea

#include "view/colour.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fovea {
namespace {

// Nine colours with the same blue hue, on a light background. scale_colour() interpolates between
// them.
constexpr std::array<Colour, 9> kOnLight{{{255, 255, 255},
                                          {229, 239, 249},
                                          {202, 222, 241},
                                          {165, 202, 228},
                                          {116, 173, 213},
                                          {70, 140, 196},
                                          {36, 106, 172},
                                          {14, 74, 138},
                                          {8, 43, 97}}};
constexpr std::array<Colour, 9> kOnDark{{{24, 30, 40},
                                         {25, 41, 62},
                                         {25, 54, 86},
                                         {26, 73, 119},
                                         {35, 98, 156},
                                         {58, 128, 191},
                                         {99, 163, 217},
                                         {154, 199, 237},
                                         {219, 237, 255}}};

// Numbers of colours in the 256-colour palette, chosen by eye. The nearest colours of its 6 × 6 × 6
// cube would include green and violet.
constexpr std::array<int, 9> kIndexedOnLight{231, 189, 153, 110, 68, 25, 19, 18, 17};
constexpr std::array<int, 9> kIndexedOnDark{234, 17, 18, 19, 25, 68, 74, 117, 195};

uint8_t between(uint8_t a, uint8_t b, float share) {
  return static_cast<uint8_t>(std::lround(a + share * static_cast<float>(b - a)));
}

}  // namespace

Colour scale_colour(int step, bool dark_ground) {
  const auto& stops = dark_ground ? kOnDark : kOnLight;
  const float place = static_cast<float>(std::clamp(step, 0, kColourSteps)) / kColourSteps *
                      static_cast<float>(stops.size() - 1);
  const size_t lower = std::min(static_cast<size_t>(place), stops.size() - 2);
  const float share = place - static_cast<float>(lower);
  const Colour a = stops[lower], b = stops[lower + 1];
  return {between(a.red, b.red, share), between(a.green, b.green, share),
          between(a.blue, b.blue, share)};
}

int indexed_colour(int step, bool dark_ground) {
  const auto& stops = dark_ground ? kIndexedOnDark : kIndexedOnLight;
  constexpr int last = static_cast<int>(std::size(kIndexedOnDark)) - 1;
  const int place = (std::clamp(step, 0, kColourSteps) * last + kColourSteps / 2) / kColourSteps;
  return stops[static_cast<size_t>(place)];
}

Colour ink_on(Colour ground) {
  const int brightness = 299 * ground.red + 587 * ground.green + 114 * ground.blue;  // ITU-R BT.601
  return brightness > 140'000 ? Colour{22, 27, 34} : Colour{255, 255, 255};
}

int scale_step(float weight, float top) {
  const float share = std::clamp(weight / top, 0.0f, 1.0f);
  const int step = static_cast<int>(std::lround(share * kColourSteps));
  return step == 0 && weight >= 0.005f ? 1 : step;
}

}  // namespace fovea

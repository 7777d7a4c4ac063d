#include "view/annotations_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "view/label.h"

namespace fovea {
namespace {

using Kind = MatrixSeries::Kind;

// Whether a place lies in the column of source word j.
bool within(float place, size_t j) {
  const float middle = static_cast<float>(j);
  return place >= middle - 0.5f && place < middle + 0.5f;
}

}  // namespace

MarkSigns MarkSigns::blocks() {
  return {"◆", "•", "■", "·", "σ", {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, Names::any};
}

MarkSigns MarkSigns::ascii() {
  return {"o", "o", "X", "'", "sigma", {".", ":", "-", "=", "+", "*", "#", "@"}, Names::ascii};
}

std::string MarkSigns::at(const MatrixAnnotations& marks, size_t i, size_t j) const {
  for (const MatrixSeries& series : marks.series) {
    const std::vector<float>& places = series.places[i];
    const auto count = std::ranges::count_if(places, [&](float place) { return within(place, j); });
    if (count == 0) continue;
    if (series.kind == Kind::position) return position;
    if (series.kind == Kind::centres)
      return count == 1 ? centre : count > 9 ? "+" : std::to_string(count);
    if (series.kind == Kind::chosen) return chosen;
  }
  return "";
}

// Returns a Gaussian for the legend, at the scale of the map: two terminal columns per word.
std::string MarkSigns::gaussian(const MatrixSeries& series, int width) const {
  double sigma_sum = 0, count = 0;
  for (const std::vector<float>& places : series.places)
    if (std::isfinite(places[1])) sigma_sum += static_cast<double>(places[1]), ++count;
  if (count == 0 || sigma_sum <= 0) return "";
  const double mean = sigma_sum / count;
  const int reach = static_cast<int>(std::min(std::ceil(4 * mean), (width - 32) / 2.0));
  std::string bell;
  for (int k = -reach; k <= reach; ++k) {
    const double off = k / 2.0 / mean, last = static_cast<double>(heights.size() - 1);
    bell += heights[static_cast<size_t>(std::lround(last * std::exp(-0.5 * off * off)))];
  }
  char size[16];
  std::snprintf(size, sizeof size, "%.1f", mean);
  return bell + "  Gaussian around " + name_of(series) + ", " + sigma + " " + size;
}

std::string MarkSigns::meaning(const MatrixSeries& series) const {
  switch (series.kind) {
    case Kind::position:
      return position + " " + name_of(series);
    case Kind::centres:
      return centre + " " + name_of(series) + ", a number where there are several";
    case Kind::chosen:
      return chosen + " the word chosen";
    case Kind::window:
      return barred + " outside the window";
    case Kind::frontier:
      return barred + " behind the frontier";
    case Kind::gaussian:
      break;  // the legend has a separate line for it
  }
  return "";
}

std::vector<std::string> MarkSigns::legend(const MatrixAnnotations& marks, int width) const {
  std::vector<std::string> lines;
  for (const MatrixSeries& series : marks.series) {
    const std::string sign = meaning(series);
    if (sign.empty()) continue;
    if (!lines.empty() && columns(lines.back()) + 3 + columns(sign) <= width)
      lines.back() += "   " + sign;
    else
      lines.push_back(label(sign, std::max(width, 8)));
  }
  for (const MatrixSeries* series : marks.all(Kind::gaussian))
    if (const std::string bell = gaussian(*series, width); !bell.empty()) lines.push_back(bell);
  for (std::string& line : wrap_columns(marks.note, width)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace fovea

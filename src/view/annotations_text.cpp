#include "view/annotations_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "view/label.h"

namespace fovea {
namespace {

// Whether a place lies in source word j.
bool within(float place, size_t j) {
  const float middle = static_cast<float>(j);
  return place >= middle - 0.5f && place < middle + 0.5f;
}

// Words one after another in lines of at most `width` columns.
std::vector<std::string> folded(const std::string& text, int width) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = label(text.substr(at, end - at), std::max(width, 8));
    at = end + 1;
    if (word.empty()) continue;
    if (!lines.empty() && columns(lines.back()) + 1 + columns(word) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
  }
  return lines;
}

}  // namespace

MarkSigns MarkSigns::blocks() {
  return {"◆", "•", "■", "·", "κ", "σ", {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}};
}

MarkSigns MarkSigns::ascii() {
  return {"o", "o", "X", "'", "kappa", "sigma", {".", ":", "-", "=", "+", "*", "#", "@"}};
}

std::string MarkSigns::at(const MatrixAnnotations& marks, size_t i, size_t j) const {
  if (i < marks.position.size() && within(marks.position[i], j)) return position;
  if (i < marks.kappa.size()) {
    const auto count = std::count_if(marks.kappa[i].begin(), marks.kappa[i].end(),
                                     [&](float k) { return within(k, j); });
    if (count > 0) return count == 1 ? kappa : count > 9 ? "+" : std::to_string(count);
  }
  if (i < marks.chosen.size() && std::count(marks.chosen[i].begin(), marks.chosen[i].end(), j) > 0)
    return chosen;
  return "";
}

// In the scale of the cells, which are two columns wide.
std::string MarkSigns::gaussian(const MatrixAnnotations& marks, int width) const {
  double sigma = 0, count = 0;
  for (const float s : marks.deviation)
    if (std::isfinite(s)) sigma += static_cast<double>(s), ++count;
  if (count == 0 || sigma <= 0) return "";
  sigma /= count;
  const int reach = static_cast<int>(std::min(std::ceil(4 * sigma), (width - 32) / 2.0));
  std::string bell;
  for (int k = -reach; k <= reach; ++k) {
    const double off = k / 2.0 / sigma, last = static_cast<double>(heights.size() - 1);
    bell += heights[static_cast<size_t>(std::lround(last * std::exp(-0.5 * off * off)))];
  }
  char size[16];
  std::snprintf(size, sizeof size, "%.1f", sigma);
  return bell + "  Gaussian around p_t, " + sigma_name + " " + size;
}

std::vector<std::string> MarkSigns::legend(const MatrixAnnotations& marks, int width) const {
  std::vector<std::string> signs;
  if (!marks.position.empty()) signs.push_back(position + " p_t");
  if (!marks.kappa.empty())
    signs.push_back(kappa + " " + kappa_name + ", a number where there are several");
  if (!marks.chosen.empty()) signs.push_back(chosen + " the word chosen");
  if (!marks.window.empty()) signs.push_back(barred + " outside the window");
  if (!marks.frontier.empty()) signs.push_back(barred + " behind the frontier");
  std::vector<std::string> lines;
  for (const std::string& sign : signs) {
    if (!lines.empty() && columns(lines.back()) + 3 + columns(sign) <= width)
      lines.back() += "   " + sign;
    else
      lines.push_back(label(sign, std::max(width, 8)));
  }
  if (const std::string bell = gaussian(marks, width); !bell.empty()) lines.push_back(bell);
  for (std::string& line : folded(marks.note, width)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace fovea

#include "view/annotations_svg.h"

#include <algorithm>
#include <cmath>

namespace fovea {
namespace {

constexpr const char* kLight =
    ".fovea .mark{stroke:#c2255c}.fovea .dot{fill:#c2255c;stroke:#fff}"
    ".fovea .far{fill:none;stroke:#c2255c}.fovea .bound{stroke:#495057}";
constexpr const char* kDark =
    ".fovea .mark{stroke:#faa2c1}.fovea .dot{fill:#faa2c1;stroke:#0d1117}"
    ".fovea .far{stroke:#faa2c1}.fovea .bound{stroke:#ced4da}";
constexpr const char* kDashes = "stroke-dasharray=\"4 3\" ";
constexpr int kSamples = 24;  // points of a Gaussian on each side of its middle

std::string point(double x, double y) { return number(x) + " " + number(y) + " "; }

std::string circle(const char* style, double x, double y, double radius) {
  return "<circle class=\"" + std::string(style) + "\" cx=\"" + number(x) + "\" cy=\"" + number(y) +
         "\" r=\"" + number(radius) + "\"/>\n";
}

std::string line(const char* style, const std::string& path, double wide, const char* more = "") {
  return "<path class=\"" + std::string(style) + "\" fill=\"none\" stroke-width=\"" + number(wide) +
         "\" " + more + "stroke-linejoin=\"round\" d=\"" + path + "\"/>\n";
}

// The marks of one map, from words to pixels.
class MarkPicture {
 public:
  MarkPicture(Drawing& drawing, const AttentionMatrix& matrix, double cell)
      : drawing_(drawing), marks_(matrix.marks), cell_(cell),
        words_(static_cast<float>(matrix.source.size())) {}

  void draw() {
    bounds();
    for (size_t i = 0; i < marks_.deviation.size(); ++i) bell(i);
    positions();
    for (size_t i = 0; i < marks_.kappa.size(); ++i) dots(i);
    for (size_t i = 0; i < marks_.chosen.size(); ++i)
      for (const size_t j : marks_.chosen[i]) outline(i, j);
  }

 private:
  double x(float place) const {  // of words, kept within the map
    return cell_ * (std::clamp(static_cast<double>(place), -0.5, words_ - 0.5) + 0.5);
  }
  double top(size_t i) const { return cell_ * static_cast<double>(i); }
  double level(size_t i) const { return top(i) + cell_ * 0.82; }  // below the weight's digits
  double thick() const { return cell_ >= 20 ? 2 : 1.2; }

  // Edges that go straight down a row and level to the next.
  template <class Edge>
  std::string steps(size_t rows, Edge edge) const {
    std::string path;
    bool lifted = true;
    for (size_t i = 0; i < rows; ++i) {
      const bool known = std::isfinite(edge(i));
      if (known)
        path += (lifted ? "M" : "L") + point(x(edge(i)), top(i)) + "V" + number(top(i + 1));
      lifted = !known;
    }
    return path;
  }

  void bounds() {
    const auto& window = marks_.window;
    if (!window.empty()) {
      drawing_.add(line("bound", steps(window.size(), [&](size_t i) { return window[i].low; }),
                        thick() * 0.75, kDashes));
      drawing_.add(line("bound", steps(window.size(), [&](size_t i) { return window[i].high; }),
                        thick() * 0.75, kDashes));
    }
    const auto& frontier = marks_.frontier;
    if (!frontier.empty())
      drawing_.add(line("mark", steps(frontier.size(), [&](size_t i) { return frontier[i]; }),
                        thick() * 1.25));
  }

  // exp(−(x − p_t)² / 2σ²) standing on the lower edge of its row, within the window.
  void bell(size_t i) {
    const float p = i < marks_.position.size() ? marks_.position[i] : NAN, s = marks_.deviation[i];
    if (!std::isfinite(p) || !std::isfinite(s) || s <= 0) return;
    float low = p - 3 * s, high = p + 3 * s;
    if (i < marks_.window.size()) {
      low = std::max(low, marks_.window[i].low);
      high = std::min(high, marks_.window[i].high);
    }
    low = std::max(low, -0.5f);
    high = std::min(high, words_ - 0.5f);
    std::string path;
    for (int k = 0; k <= 2 * kSamples; ++k) {
      const float at = low + (high - low) * static_cast<float>(k) / (2 * kSamples);
      const float off = (at - p) / s;
      const double height = 0.85 * cell_ * std::exp(-0.5 * static_cast<double>(off * off));
      path += (k ? "L" : "M") + point(x(at), top(i + 1) - height);
    }
    drawing_.add(line("mark", path, thick() * 0.5, "stroke-opacity=\"0.85\" "));
  }

  void positions() {
    std::string path, dots;
    bool lifted = true;
    for (size_t i = 0; i < marks_.position.size(); ++i) {
      const float p = marks_.position[i];
      if (!std::isfinite(p)) {
        lifted = true;
        continue;
      }
      path += (lifted ? "M" : "L") + point(x(p), level(i));
      lifted = false;
      dots += circle("dot", x(p), level(i), std::clamp(cell_ * 0.1, 1.5, 3.5));
    }
    if (!path.empty()) drawing_.add(line("mark", path, thick()) + dots);
  }

  void dots(size_t i) {
    const double radius = std::clamp(cell_ * 0.11, 1.2, 4.0);
    for (const float k : marks_.kappa[i])
      if (std::isfinite(k)) {
        const bool beyond = k > words_ - 0.5f;
        drawing_.add(circle(beyond ? "far" : "dot", x(k), level(i), radius));
      }
  }

  void outline(size_t i, size_t j) {
    const double inset = thick() * 0.75, side = std::max(cell_ - 2 * inset, 0.5);
    drawing_.add("<rect class=\"mark\" fill=\"none\" stroke-width=\"" + number(thick() * 1.25) +
                 "\" pointer-events=\"none\" x=\"" +
                 number(cell_ * static_cast<double>(j) + inset) + "\" y=\"" +
                 number(top(i) + inset) + "\" width=\"" + number(side) + "\" height=\"" +
                 number(side) + "\"/>\n");
  }

  Drawing& drawing_;
  const MatrixAnnotations& marks_;
  double cell_;
  float words_;
};

// A sign 22 wide, level with (0, 0), and what it means.
struct Sign {
  std::string markup, meaning;
};

std::vector<Sign> signs_of(const MatrixAnnotations& marks) {
  std::vector<Sign> signs;
  if (!marks.position.empty())
    signs.push_back({line("mark", "M0 0h22", 2) + circle("dot", 11, 0, 3), "p_t"});
  if (!marks.deviation.empty())
    signs.push_back({line("mark", "M0 5q6 0 9 -8q2 -4 4 0q3 8 9 8", 1.2), "Gaussian around it"});
  if (!marks.window.empty())
    signs.push_back({line("bound", "M0 0h22", 1.5, kDashes), "ends of the window"});
  if (!marks.kappa.empty())
    signs.push_back({circle("dot", 5, 0, 3.5) + circle("far", 17, 0, 3.5),
                     "κ within the sentence, and beyond its end"});
  if (!marks.chosen.empty())
    signs.push_back(
        {"<rect class=\"mark\" fill=\"none\" stroke-width=\"2.5\" x=\"5\" "
         "y=\"-6\" width=\"12\" height=\"12\"/>\n",
         "the word chosen"});
  if (!marks.frontier.empty())
    signs.push_back({line("mark", "M0 0h22", 2.5), "frontier: nothing left of it is looked at"});
  return signs;
}

}  // namespace

void draw_marks(Drawing& drawing, const AttentionMatrix& matrix, double cell) {
  drawing.rule(kLight, kDark);
  drawing.add("<g pointer-events=\"none\">\n");
  MarkPicture(drawing, matrix, cell).draw();
  drawing.add("</g>\n");
}

double draw_mark_legend(Drawing& drawing, const MatrixAnnotations& marks, Drawing::Text at,
                        double width) {
  const double left = at.x, right = at.x + width;
  for (const Sign& sign : signs_of(marks)) {
    const double wide = 29 + text_width(sign.meaning, at.size) + 16;
    if (at.x > left && at.x + wide > right) at.x = left, at.y += 18;
    drawing.add("<g transform=\"translate(" + number(at.x) + " " + number(at.y - 4) + ")\">" +
                sign.markup + "</g>\n");
    Drawing::Text words = at;
    words.x += 29;
    drawing.text(sign.meaning, words);
    at.x += wide;
  }
  return at.x > left ? at.y + 24 : at.y;
}

}  // namespace fovea

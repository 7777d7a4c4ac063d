#include "view/annotations_svg.h"

#include <algorithm>
#include <cmath>

namespace fovea {
namespace {

using Kind = MatrixSeries::Kind;

constexpr const char* kLight =
    ".fovea .mark{stroke:#c2255c}.fovea .dot{fill:#c2255c;stroke:#fff}"
    ".fovea .far{fill:none;stroke:#c2255c}.fovea .bound{stroke:#495057}";
constexpr const char* kDark =
    ".fovea .mark{stroke:#faa2c1}.fovea .dot{fill:#faa2c1;stroke:#0d1117}"
    ".fovea .far{stroke:#faa2c1}.fovea .bound{stroke:#ced4da}";
constexpr const char* kDashes = "stroke-dasharray=\"4 3\" ";
constexpr int kSamples = 24;  // number of points on each side of a Gaussian

std::string point(double x, double y) { return number(x) + " " + number(y) + " "; }

std::string circle(const char* style, double x, double y, double radius) {
  return "<circle class=\"" + std::string(style) + "\" cx=\"" + number(x) + "\" cy=\"" + number(y) +
         "\" r=\"" + number(radius) + "\"/>\n";
}

std::string line(const char* style, const std::string& path, double wide, const char* more = "") {
  return "<path class=\"" + std::string(style) + "\" fill=\"none\" stroke-width=\"" + number(wide) +
         "\" " + more + "stroke-linejoin=\"round\" d=\"" + path + "\"/>\n";
}

// Draws the marks of one map and converts places to pixels.
class MarkPicture {
 public:
  MarkPicture(Drawing& drawing, const AttentionMatrix& matrix, double cell)
      : drawing_(drawing), marks_(matrix.marks), cell_(cell),
        words_(static_cast<float>(matrix.source.size())) {}

  void draw() {
    for (const MatrixSeries* series : marks_.all(Kind::window)) window(*series);
    for (const MatrixSeries* series : marks_.all(Kind::frontier))
      drawing_.add(line("mark", steps(*series, 0), thick() * 1.25));
    for (const MatrixSeries* series : marks_.all(Kind::gaussian))
      for (size_t i = 0; i < series->places.size(); ++i) bell(i, series->places[i]);
    for (const MatrixSeries* series : marks_.all(Kind::position)) positions(*series);
    for (const MatrixSeries* series : marks_.all(Kind::centres))
      for (size_t i = 0; i < series->places.size(); ++i) dots(i, series->places[i]);
    for (const MatrixSeries* series : marks_.all(Kind::chosen))
      for (size_t i = 0; i < series->places.size(); ++i)
        for (const float j : series->places[i]) outline(i, static_cast<size_t>(j));
  }

 private:
  double x(float place) const {  // x of a place, clamped to the map
    return cell_ * (std::clamp(static_cast<double>(place), -0.5, words_ - 0.5) + 0.5);
  }
  double top(size_t i) const { return cell_ * static_cast<double>(i); }
  double level(size_t i) const { return top(i) + cell_ * 0.82; }  // y below the digits
  double thick() const { return cell_ >= 20 ? 2 : 1.2; }

  // Returns a line that joins the k-th place of all rows. It is vertical inside a row and
  // horizontal between two rows.
  std::string steps(const MatrixSeries& series, size_t k) const {
    std::string path;
    bool lifted = true;
    for (size_t i = 0; i < series.places.size(); ++i) {
      const float edge = series.places[i][k];
      const bool known = std::isfinite(edge);
      if (known) path += (lifted ? "M" : "L") + point(x(edge), top(i)) + "V" + number(top(i + 1));
      lifted = !known;
    }
    return path;
  }

  void window(const MatrixSeries& series) {
    for (const size_t edge : {0, 1})
      drawing_.add(line("bound", steps(series, edge), thick() * 0.75, kDashes));
  }

  // Draws the curve exp(−(x − p)² / 2σ²) above the lower edge of row i, between the edges in its
  // `places`.
  void bell(size_t i, const std::vector<float>& places) {
    const float p = places[0], s = places[1];
    if (!std::isfinite(p) || !std::isfinite(s) || s <= 0) return;
    const float low = std::max({p - 3 * s, places[2], -0.5f});
    const float high = std::min({p + 3 * s, places[3], words_ - 0.5f});
    std::string path;
    for (int k = 0; k <= 2 * kSamples; ++k) {
      const float at = low + (high - low) * static_cast<float>(k) / (2 * kSamples);
      const float off = (at - p) / s;
      const double height = 0.85 * cell_ * std::exp(-0.5 * static_cast<double>(off * off));
      path += (k ? "L" : "M") + point(x(at), top(i + 1) - height);
    }
    drawing_.add(line("mark", path, thick() * 0.5, "stroke-opacity=\"0.85\" "));
  }

  void positions(const MatrixSeries& series) {
    std::string path, dots;
    bool lifted = true;
    for (size_t i = 0; i < series.places.size(); ++i) {
      const float p = series.places[i][0];
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

  void dots(size_t i, const std::vector<float>& places) {
    const double radius = std::clamp(cell_ * 0.11, 1.2, 4.0);
    for (const float k : places)
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

// An entry of the legend: a sign and its meaning. The sign is 22 pixels wide, from x = 0, and its
// vertical centre is y = 0.
struct Sign {
  std::string markup, meaning;
};

Sign sign_of(const MatrixSeries& series) {
  switch (series.kind) {
    case Kind::position:
      return {line("mark", "M0 0h22", 2) + circle("dot", 11, 0, 3), series.label};
    case Kind::gaussian:
      return {line("mark", "M0 5q6 0 9 -8q2 -4 4 0q3 8 9 8", 1.2),
              "Gaussian around " + series.label};
    case Kind::window:
      return {line("bound", "M0 0h22", 1.5, kDashes), "ends of the window"};
    case Kind::centres:
      return {circle("dot", 5, 0, 3.5) + circle("far", 17, 0, 3.5),
              series.label + " within the sentence, and beyond its end"};
    case Kind::chosen:
      return {
          "<rect class=\"mark\" fill=\"none\" stroke-width=\"2.5\" x=\"5\" "
          "y=\"-6\" width=\"12\" height=\"12\"/>\n",
          "the word chosen"};
    case Kind::frontier:
      break;
  }
  return {line("mark", "M0 0h22", 2.5), "frontier: no weight left of it"};
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
  for (const MatrixSeries& series : marks.series) {
    const Sign sign = sign_of(series);
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

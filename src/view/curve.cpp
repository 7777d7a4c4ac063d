#include "view/curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/check.h"
#include "view/drawing.h"
#include "view/label.h"

namespace fovea {
namespace {

constexpr double kWidth = 680, kPlotHeight = 300, kPad = Drawing::kPad;
constexpr double kLargest = 1e100;  // so that differences and steps are finite

// One axis of a chart, which converts values to pixels.
class Axis {
 public:
  static bool takes(double v) { return std::abs(v) < kLargest; }
  void include(double v) {
    if (!takes(v)) return;
    low_ = std::min(low_, v);
    high_ = std::max(high_, v);
  }

  // Sets the range of values and the range of pixels. If `rounded` is true, extends the range of
  // values to whole ticks.
  void settle(double from, double to, bool rounded) {
    if (low_ > high_) low_ = 0, high_ = 1;
    const double size = std::max(std::abs(low_), std::abs(high_));
    if (high_ - low_ < size * 1e-9 + 1e-12) {  // true if all values are equal
      low_ -= std::max(0.5, size * 0.05);
      high_ += std::max(0.5, size * 0.05);
    }
    step_ = round_step((high_ - low_) / 5);
    if (rounded) {
      low_ = std::floor(low_ / step_ + 1e-9) * step_;
      high_ = std::ceil(high_ / step_ - 1e-9) * step_;
    }
    from_ = from, to_ = to;
  }

  double place(double v) const { return from_ + (v - low_) / (high_ - low_) * (to_ - from_); }

  struct Tick {
    double place;
    std::string text;
  };
  std::vector<Tick> ticks() const {
    std::vector<Tick> all;
    for (double k = std::ceil(low_ / step_ - 1e-6); k <= high_ / step_ + 1e-6; ++k)
      add_tick(all, k * step_);
    return all;
  }

 private:
  void add_tick(std::vector<Tick>& all, double v) const {
    if (v < low_ - 1e-9 || v > high_ + 1e-9 * std::abs(high_) + 1e-12) return;
    all.push_back({place(v), text(std::abs(v) < step_ * 1e-6 ? 0 : v)});
  }

  // Returns the smallest number 1, 2 or 5 times a power of ten that is at least `rough`.
  static double round_step(double rough) {
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double digit : {1.0, 2.0, 5.0})
      if (rough <= digit * power * 1.0000001) return digit * power;
    return 10 * power;
  }

  // Returns the label of a tick. All labels of an axis have the same unit, such as 5k and 10k
  // instead of 5000 and 10k.
  std::string text(double value) const {
    const double size = std::max(std::abs(low_), std::abs(high_));
    const double unit = size >= 2e6 && size < 1e9 ? 1e6 : size >= 1e4 && size < 1e9 ? 1e3 : 1;
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.6g%s", value / unit,
                  value == 0 || unit == 1 ? "" : (unit > 1e3 ? "M" : "k"));
    return digits;
  }

  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
  double step_ = 1, from_ = 0, to_ = 1;
};

// The points of one curve, grouped by columns of the picture that are two pixels wide.
class Line {
 public:
  void point(double x, double y) {
    const double column = std::floor(x / 2);
    if (runs_.empty() || lifted_) runs_.emplace_back();
    lifted_ = false;
    if (runs_.back().empty() || runs_.back().back().column != column)
      runs_.back().push_back({.column = column, .low = y, .high = y});
    Span& span = runs_.back().back();
    span.x += x, span.y += y, ++span.count;
    span.low = std::min(span.low, y), span.high = std::max(span.high, y);
  }
  void lift() { lifted_ = true; }
  bool empty() const { return runs_.empty(); }
  double last_x() const { return runs_.back().back().mean_x(); }
  double last_y() const { return runs_.back().back().mean_y(); }

  std::string path() const {
    std::string out;
    for (const auto& run : runs_) {
      out += "M";
      for (const Span& span : run) out += coordinates(span, span.mean_y());
      if (run.size() == 1) out += "h0.01";  // so that a run of a single point is drawn as a dot
    }
    return out;
  }

  // Returns the outline of the band: the upper edge from left to right, then the lower edge from
  // right to left. If no column has two points, returns "".
  std::string band() const {
    std::string out;
    for (const auto& run : runs_) {
      if (std::none_of(run.begin(), run.end(), [](const Span& s) { return s.count > 1; })) continue;
      out += "M";
      for (const Span& span : run) out += coordinates(span, span.low);
      for (auto span = run.rbegin(); span != run.rend(); ++span)
        out += coordinates(*span, span->high);
      out += "z";
    }
    return out;
  }

 private:
  struct Span {
    double column, low, high;
    double x = 0, y = 0, count = 0;
    double mean_x() const { return x / count; }
    double mean_y() const { return y / count; }
  };
  static std::string coordinates(const Span& span, double y) {
    return number(span.mean_x()) + " " + number(y) + " ";
  }
  std::vector<std::vector<Span>> runs_;
  bool lifted_ = false;
};

class ChartPicture {
 public:
  explicit ChartPicture(const Chart& chart) : chart_(chart) {
    for (const Curve& curve : chart.curves)
      for (size_t i = 0; i < curve.x.size(); ++i)
        if (x_.takes(curve.x[i]) && y_.takes(curve.y[i]))
          x_.include(curve.x[i]), y_.include(curve.y[i]);
  }

  std::string draw() {
    double y = legend(drawing_.heading(chart_.title, kWidth) + 6);
    drawing_.text(chart_.y_name, {.x = kPad, .y = y + 12, .size = 12, .style = "faint"});
    top_ = y + 24, bottom_ = top_ + kPlotHeight;
    y_.settle(bottom_, top_, true);
    left_ = kPad + 12;
    for (const Axis::Tick& tick : y_.ticks())
      left_ = std::max(left_, kPad + 10 + text_width(tick.text, 11));
    x_.settle(left_, kWidth - kPad - 8, false);
    axes();
    for (size_t c = 0; c < chart_.curves.size(); ++c) curve(c);
    drawing_.text(chart_.x_name, {.x = (left_ + kWidth - kPad) / 2,
                                  .y = bottom_ + 40,
                                  .size = 12,
                                  .style = "faint",
                                  .anchor = "middle"});
    return drawing_.finish({kWidth, bottom_ + 40 + kPad},
                           chart_.title.empty() ? "Chart" : chart_.title,
                           chart_.y_name + " by " + chart_.x_name);
  }

 private:
  static std::string style(size_t c) { return Drawing::group_style(c); }
  // From the seventh curve on, colours repeat. So these lines are dashed or dotted, too.
  static std::string dashes(size_t c) {
    constexpr std::array<const char*, 4> kPatterns{"", "6 3", "1 5", "9 5 1 5"};
    const std::string pattern = kPatterns[c / Drawing::kGroupColours % kPatterns.size()];
    return pattern.empty() ? "" : " stroke-dasharray=\"" + pattern + "\"";
  }

  double legend(double y) {
    drawing_.group_rules();
    drawing_.rule(".fovea .grid{stroke:#eaeef2}", ".fovea .grid{stroke:#21262d}");
    if (chart_.curves.size() < 2 && (chart_.curves.empty() || chart_.curves[0].name.empty()))
      return y;
    double x = kPad;
    for (size_t c = 0; c < chart_.curves.size(); ++c) {
      const std::string name = label(chart_.curves[c].name, 40);
      const double wide = 34 + text_width(name, 12) + 18;
      if (x > kPad && x + wide > kWidth - kPad) x = kPad, y += 18;
      drawing_.add("<path class=\"" + style(c) +
                   "\" stroke-width=\"2.5\" stroke-linecap=\"round\"" + dashes(c) + " d=\"M" +
                   number(x) + " " + number(y + 6) + "h24\"/>\n");
      drawing_.text(name, {.x = x + 31, .y = y + 10, .size = 12});
      x += wide;
    }
    return y + 24;
  }

  void axes() {
    for (const Axis::Tick& tick : y_.ticks()) {
      drawing_.add("<path class=\"grid\" d=\"M" + number(left_) + " " + number(tick.place) + "H" +
                   number(kWidth - kPad) + "\"/>\n");
      drawing_.text(
          tick.text,
          {.x = left_ - 8, .y = tick.place + 4, .size = 11, .style = "faint", .anchor = "end"});
    }
    drawing_.add("<path class=\"frame\" d=\"M" + number(left_) + " " + number(bottom_) + "H" +
                 number(kWidth - kPad) + "\"/>\n");
    double free_from = -100;  // where the next label may begin; ticks may be close
    for (const Axis::Tick& tick : x_.ticks()) {
      drawing_.add("<path class=\"frame\" d=\"M" + number(tick.place) + " " + number(bottom_) +
                   "v5\"/>\n");
      const double half = text_width(tick.text, 11) / 2;
      if (tick.place - half < free_from) continue;
      free_from = tick.place + half + 6;
      drawing_.text(
          tick.text,
          {.x = tick.place, .y = bottom_ + 19, .size = 11, .style = "faint", .anchor = "middle"});
    }
  }

  void curve(size_t c) {
    const Curve& curve = chart_.curves[c];
    Line line;
    for (size_t i = 0; i < curve.x.size(); ++i) {
      if (x_.takes(curve.x[i]) && y_.takes(curve.y[i]))
        line.point(x_.place(curve.x[i]), y_.place(curve.y[i]));
      else
        line.lift();
    }
    if (line.empty()) return;
    drawing_.add("<g>");
    drawing_.tooltip(curve.name);
    if (const std::string band = line.band(); !band.empty())
      drawing_.add("<path class=\"f" + style(c) + "\" fill-opacity=\"0.2\" d=\"" + band + "\"/>");
    drawing_.add("<path class=\"" + style(c) +
                 "\" fill=\"none\" stroke-width=\"2\" stroke-linejoin=\"round\" "
                 "stroke-linecap=\"round\"" +
                 dashes(c) + " d=\"" + line.path() + "\"/>");
    drawing_.add("<circle class=\"f" + style(c) + "\" cx=\"" + number(line.last_x()) + "\" cy=\"" +
                 number(line.last_y()) + "\" r=\"3.2\"/></g>\n");
  }

  const Chart& chart_;
  Axis x_, y_;
  double left_ = 0, top_ = 0, bottom_ = 0;
  Drawing drawing_;
};

}  // namespace

std::string svg_chart(const Chart& chart) {
  for (const Curve& curve : chart.curves)
    check(curve.x.size() == curve.y.size(), ExitCode::data, "curve '", label(curve.name), "' has ",
          curve.x.size(), " x values but ", curve.y.size(), " y values");
  return ChartPicture(chart).draw();
}

}  // namespace fovea

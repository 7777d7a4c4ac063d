#include "view/scatter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "view/drawing.h"
#include "view/label.h"

namespace fovea {
namespace {

constexpr double kWidth = 760, kPad = Drawing::kPad, kMargin = 56;
constexpr double kLeastHeight = 260, kMostHeight = 620;
constexpr int kLabelColumns = 24;

struct Box {
  double left, top, right, bottom;

  double overlap(const Box& other) const {
    const double wide = std::min(right, other.right) - std::max(left, other.left);
    const double high = std::min(bottom, other.bottom) - std::max(top, other.top);
    return wide > 0 && high > 0 ? wide * high : 0;
  }
};

struct PlacedName {
  const ScatterPoint* point;
  std::string name;
  double x, y, size;  // x, y: position of the point; size: font size of the name
  Box box{};          // the area of the name
  bool moved = false;

  double width() const { return text_width(name, size) * (point->centre ? 1.12 : 1); }  // bold
  double radius() const { return point->centre ? 5.5 : 3.5; }
};

// Places the names. Each name gets a free position near its point. If no position is free, it gets
// the position that hides least.
class Placement {
 public:
  Placement(std::vector<PlacedName>& all, const Box& area) : all_(all), area_(area) {
    for (PlacedName& p : all_) place(p);
  }

 private:
  void place(PlacedName& p) {
    double best = std::numeric_limits<double>::infinity();
    const double wide = p.width(), high = p.size;
    for (int ring = 0; ring < 4; ++ring) {
      const double gap = p.radius() + 3 + 11 * ring;
      for (const auto& [dx, dy] : kDirections) {
        const double centre_x = p.x + dx * (gap + wide / 2), centre_y = p.y + dy * (gap + high / 2);
        const Box box{centre_x - wide / 2, centre_y - high / 2, centre_x + wide / 2,
                      centre_y + high / 2};
        const double cost = hidden(box, p) + 12 * ring + (dx == 0 || dy == 0 ? 0 : 1);
        if (cost >= best) continue;
        best = cost;
        p.box = box;
        p.moved = ring > 0;
      }
    }
    names_.push_back(p.box);
  }

  double hidden(const Box& box, const PlacedName& own) const {
    double area = 0;
    for (const Box& name : names_) area += box.overlap(name);
    for (const PlacedName& p : all_) {
      if (&p == &own) continue;
      const double r = p.radius() + 1;
      area += 1.5 * box.overlap({p.x - r, p.y - r, p.x + r, p.y + r});
    }
    const double inside = box.overlap(area_);
    return area + 3 * ((box.right - box.left) * (box.bottom - box.top) - inside);
  }

  static constexpr std::array<std::array<double, 2>, 8> kDirections{
      {{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {0.8, -0.9}, {-0.8, -0.9}, {0.8, 0.9}, {-0.8, 0.9}}};
  std::vector<PlacedName>& all_;
  Box area_;
  std::vector<Box> names_;
};

class ScatterPicture {
 public:
  explicit ScatterPicture(const ScatterPlot& scatter) : scatter_(scatter) {}

  std::string draw() {
    styles();
    const Drawing::Text note{.x = kPad,
                             .y = drawing_.heading(scatter_.title, kWidth) + 12,
                             .size = 12,
                             .style = "faint"};
    const double y = drawing_.paragraph(scatter_.note, note, kWidth - 2 * kPad, 3, 17) - 2;
    const double height = fit(y);
    const Placement place(points_, {kPad / 2, y, kWidth - kPad / 2, y + height});
    drawing_.add("<rect class=\"frame\" x=\"" + number(kPad / 2) + "\" y=\"" + number(y) +
                 "\" width=\"" + number(kWidth - kPad) + "\" height=\"" + number(height) +
                 "\" rx=\"6\"/>\n");
    for (const PlacedName& p : points_) spoke(p);
    for (const PlacedName& p : points_) point(p);
    for (const PlacedName& p : points_) name(p);
    return drawing_.finish({kWidth, y + height + kPad}, scatter_.title, description());
  }

 private:
  static std::string style(const ScatterPoint& p) { return Drawing::group_style(p.group); }

  void styles() {
    drawing_.group_rules();
    drawing_.rule(".fovea .name{paint-order:stroke;stroke:#fff;stroke-width:3px}",
                  ".fovea .name{stroke:#0d1117}");
    drawing_.rule(".fovea .bold{font-weight:700}");
    drawing_.rule(".fovea .lead{stroke:#8c959f}", ".fovea .lead{stroke:#767e88}");
  }

  // Sets the positions of the points, below `top`. Centres are first, so that their names get the
  // best positions. Returns the height of the map.
  double fit(double top) {
    double low_x = 0, high_x = 0, low_y = 0, high_y = 0;
    bool any = false;
    const auto shown = [](const ScatterPoint& p) {
      return std::abs(p.x) < 1e100 && std::abs(p.y) < 1e100;
    };
    for (const ScatterPoint& p : scatter_.points) {
      if (!shown(p)) continue;
      low_x = any ? std::min(low_x, p.x) : p.x, high_x = any ? std::max(high_x, p.x) : p.x;
      low_y = any ? std::min(low_y, p.y) : p.y, high_y = any ? std::max(high_y, p.y) : p.y;
      any = true;
    }
    const double wide = std::max(high_x - low_x, 1e-12), high = high_y - low_y;
    const double room_x = kWidth - 2 * kPad - 2 * kMargin, room_y = kMostHeight - 2 * kMargin;
    const double scale = std::min(room_x / wide, high > 0 ? room_y / high : room_x / wide);
    const double height = std::max(kLeastHeight, scale * high + 2 * kMargin);
    for (const bool centres : {true, false})
      for (const ScatterPoint& p : scatter_.points) {
        if (p.centre != centres || !shown(p)) continue;
        points_.push_back(
            {&p, label(p.name, kLabelColumns), kWidth / 2 + scale * (p.x - (low_x + high_x) / 2),
             top + height / 2 - scale * (p.y - (low_y + high_y) / 2), centres ? 14.0 : 12.0});
      }
    return height;
  }

  const PlacedName* centre_of(const PlacedName& p) const {
    for (const PlacedName& c : points_)
      if (c.point->centre && c.point->group == p.point->group) return &c;
    return nullptr;
  }

  void line(const std::string& classes, double x, double y, double to_x, double to_y) {
    drawing_.add("<path class=\"" + classes + "\" d=\"M" + number(x) + " " + number(y) + "L" +
                 number(to_x) + " " + number(to_y) + "\"/>\n");
  }

  void spoke(const PlacedName& p) {
    const PlacedName* centre = p.point->centre ? nullptr : centre_of(p);
    if (centre) line(style(*p.point) + "\" stroke-opacity=\"0.28", centre->x, centre->y, p.x, p.y);
  }

  void point(const PlacedName& p) {
    if (p.moved)
      line("lead", p.x, p.y, std::clamp(p.x, p.box.left, p.box.right),
           std::clamp(p.y, p.box.top, p.box.bottom));
    drawing_.add("<circle class=\"f" + style(*p.point) + "\" cx=\"" + number(p.x) + "\" cy=\"" +
                 number(p.y) + "\" r=\"" + number(p.radius()) + "\">");
    drawing_.tooltip(p.point->name);
    drawing_.add("</circle>\n");
  }

  void name(const PlacedName& p) {
    drawing_.text(p.name, {.x = (p.box.left + p.box.right) / 2,
                           .y = p.box.bottom - p.size * 0.18,
                           .size = p.size,
                           .style = p.point->centre ? "ink name bold" : "ink name",
                           .anchor = "middle"});
  }

  std::string description() const {
    std::string text;
    for (const PlacedName& p : points_) text += (text.empty() ? "" : ", ") + p.name;
    return text;
  }

  const ScatterPlot& scatter_;
  std::vector<PlacedName> points_;
  Drawing drawing_;
};

}  // namespace

std::string svg_scatter(const ScatterPlot& scatter) { return ScatterPicture(scatter).draw(); }

}  // namespace fovea

#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// An SVG picture under construction. Text stays text; colours are classes, so that one picture
// suits light and dark pages (prefers-color-scheme), also inside <img>. Every string handed over
// may hold any bytes: it is shortened, made visible and escaped here and nowhere else.
class Drawing {
 public:
  struct Size {
    double width, height;
  };
  struct Text {
    double x, y;
    double size = 12;
    const char* style = "ink";     // "ink", "faint", "strong" or a class of this drawing
    const char* anchor = "start";  // "start", "middle", "end"
    double turn = 0;               // degrees, around (x, y)
  };

  // Shapes in SVG's own words, numbers and class names only.
  void add(std::string_view markup) { body_ += markup; }
  void text(std::string_view words, const Text& how);
  void tooltip(std::string_view words);  // for the group or shape that is open

  // The class that paints a shape, or text lying on it, in a step of the colour scale.
  std::string paint(int step);
  std::string ink_on(int step);

  // A bar of the colour scale from 0 to `top`, `width` wide, its upper left corner at (x, y).
  void scale_bar(double x, double y, double width, float top);

  // A rule of CSS for light and, if not empty, another for dark pages.
  void rule(std::string_view light, std::string_view dark = {});

  // The finished file. `title` and `description` are for readers that cannot see it.
  std::string finish(Size size, std::string_view title, std::string_view description) const;

 private:
  std::string body_, light_, dark_;
  std::set<int> painted_, inked_;
};

// "12.5": at most two decimals, no trailing zeros.
std::string number(double value);

// How wide a label will be, near enough for the fonts named in the drawing.
double text_width(std::string_view label, double size);

// The text cut at spaces into lines of at most `width`; a longer word is shortened. At most `limit`
// lines, the last of which ends in … if there would be more.
std::vector<std::string> wrap(std::string_view text, double width, double size, size_t limit);

}  // namespace fovea

#pragma once

#include <set>
#include <string>
#include <string_view>

namespace fovea {

// An SVG picture under construction. Text remains text. Colours are CSS classes, so that one
// picture fits light and dark pages (prefers-color-scheme), also inside <img>. All strings may have
// any bytes: this class alone shortens, sanitizes and escapes them.
class Drawing {
 public:
  static constexpr double kPad = 20;  // between the edge of a picture and its content
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

  // Adds SVG markup: shapes with numbers and class names only.
  void add(std::string_view markup) { body_ += markup; }
  void text(std::string_view words, const Text& how);
  // Adds a text in at most `limit` lines of at most `width`, which are `distance` apart. Returns
  // the y of the next line.
  double paragraph(std::string_view words, Text line, double width, size_t limit, double distance);
  // Adds the title of a picture at its upper edge. Returns the y below it.
  double heading(std::string_view title, double picture_width);
  void tooltip(std::string_view words);  // of the open group or shape

  // Returns the class that fills a shape, or text on it, with a step of the colour scale.
  std::string paint(int step);
  std::string ink_on(int step);

  // Adds a bar of the colour scale from 0 to `top`. (x, y) is its upper left corner.
  void scale_bar(double x, double y, double width, float top);

  // Returns the class that draws the lines of group 0, 1, … With "f" before it, it is the class
  // that fills the shapes of the group. The groups share kGroupColours colours, which people with
  // any kind of colour vision can distinguish. REQUIRES: group_rules() was called.
  static std::string group_style(size_t group) {
    return "k" + std::to_string(group % kGroupColours);
  }
  void group_rules();
  static constexpr size_t kGroupColours = 6;

  // Adds a CSS rule for light pages and, if `dark` is not empty, one for dark pages.
  void rule(std::string_view light, std::string_view dark = {});

  // Returns the finished file. `title` and `description` are for screen readers.
  std::string finish(Size size, std::string_view title, std::string_view description) const;

 private:
  std::string body_, light_, dark_;
  std::set<int> painted_, inked_;
};

// Returns a number as text with at most two decimals and without trailing zeros: "12.5".
std::string number(double value);

// Returns the approximate width of a label in the fonts of the drawing.
double text_width(std::string_view label, double size);

}  // namespace fovea

#pragma once

#include <set>
#include <string>
#include <string_view>

namespace fovea {

// An SVG picture under construction. Text stays text, not shapes. Colours are CSS classes, so that
// one picture fits light and dark pages (prefers-color-scheme), also inside <img>. Strings may have
// any bytes, because this class shortens, sanitizes and escapes them. No other code does.
class Drawing {
 public:
  static constexpr double kPad = 20;  // pixels between the edge of a picture and its content
  struct Size {
    double width, height;
  };
  struct Text {
    double x, y;
    double size = 12;
    const char* style = "ink";     // "ink", "faint", "strong" or a class from rule()
    const char* anchor = "start";  // "start", "middle", "end"
    double turn = 0;               // rotation in degrees, around (x, y)
  };

  // Adds SVG markup. It may have only shapes with numbers and class names, because it is not
  // escaped.
  void add(std::string_view markup) { body_ += markup; }
  void text(std::string_view words, const Text& how);
  // Adds a text, split into at most `limit` lines of at most `width` pixels. Lines are `distance`
  // pixels apart. Returns the y of the line after the text.
  double paragraph(std::string_view words, Text line, double width, size_t limit, double distance);
  // Adds the title of a picture at its upper edge. Returns the y below it.
  double heading(std::string_view title, double picture_width);
  void tooltip(std::string_view words);  // adds a tooltip to the open group or shape

  // Returns the CSS class that fills a shape (or text on it) with the colour of `step` on the
  // colour scale.
  std::string paint(int step);
  std::string ink_on(int step);

  // Adds a bar that shows the colour scale from 0 to `top`. (x, y) is its upper left corner.
  void scale_bar(double x, double y, double width, float top);

  // Returns the class that draws the lines of group 0, 1, … "f" followed by it is the class that
  // fills the shapes of the group. Groups share kGroupColours colours, which people with any kind
  // of colour vision can distinguish. REQUIRES: group_rules() was called.
  static std::string group_style(size_t group) {
    return "k" + std::to_string(group % kGroupColours);
  }
  void group_rules();
  static constexpr size_t kGroupColours = 6;

  // Adds a CSS rule for light pages. If `dark` is not empty, adds it as a rule for dark pages.
  void rule(std::string_view light, std::string_view dark = {});

  // Returns the finished SVG file. `title` and `description` are for screen readers.
  std::string finish(Size size, std::string_view title, std::string_view description) const;

 private:
  std::string body_, light_, dark_;
  std::set<int> painted_, inked_;
};

// Returns a number as text with at most two decimals and without trailing zeros: "12.5".
std::string number(double value);

// Returns the approximate width of a label in pixels, in the fonts of the drawing.
double text_width(std::string_view label, double size);

}  // namespace fovea

#include "view/drawing.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "view/colour.h"
#include "view/label.h"

namespace fovea {
namespace {

constexpr double kLetterWidth = 0.58;  // of the font size: the mean width in the sans-serif fonts
                                       // below

constexpr std::string_view kLightRules =
    ".fovea{font-family:Inter,'Segoe UI','Helvetica Neue',Helvetica,Arial,'Noto Sans',"
    "'DejaVu Sans',sans-serif}"
    ".fovea .paper{fill:#fff}.fovea .ink{fill:#1f2328}.fovea .faint{fill:#59636e}"
    ".fovea .strong{fill:#1f2328;font-weight:600}"
    ".fovea .frame{fill:none;stroke:#d1d9e0}.fovea .best{fill:none;stroke:#f08c00}"
    ".fovea .unknown{fill:#d1d9e0}";
constexpr std::string_view kDarkRules =
    ".fovea .paper{fill:#0d1117}.fovea .ink{fill:#e6edf3}.fovea .faint{fill:#9198a1}"
    ".fovea .strong{fill:#f0f6fc}.fovea .frame{stroke:#30363d}.fovea .best{stroke:#ffa94d}"
    ".fovea .unknown{fill:#3d444d}";

constexpr std::array<const char*, Drawing::kGroupColours> kOnLight{"#0b5cad", "#d9480f", "#2b8a3e",
                                                                   "#7048e8", "#c2255c", "#5c636a"};
constexpr std::array<const char*, Drawing::kGroupColours> kOnDark{"#6cb2f5", "#ff922b", "#69db7c",
                                                                  "#b197fc", "#f783ac", "#adb5bd"};

std::string hex(Colour c) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", c.red, c.green, c.blue);
  return text;
}

std::string fill_rule(const char* prefix, int step, Colour colour) {
  return ".fovea ." + (prefix + std::to_string(step)) + "{fill:" + hex(colour) + "}";
}

}  // namespace

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2f", std::clamp(value, -1e9, 1e9));
  std::string digits = text;
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

double text_width(std::string_view label, double size) {
  return columns(label) * size * kLetterWidth;
}

void Drawing::text(std::string_view words, const Text& how) {
  body_ += "<text class=\"" + std::string(how.style) + "\" x=\"" + number(how.x) + "\" y=\"" +
           number(how.y) + "\" font-size=\"" + number(how.size) + "\"";
  if (std::string_view(how.anchor) != "start")
    body_ += " text-anchor=\"" + std::string(how.anchor) + "\"";
  if (how.turn != 0)
    body_ += " transform=\"rotate(" + number(how.turn) + " " + number(how.x) + " " + number(how.y) +
             ")\"";
  body_ += ">" + xml(label(words, 400)) + "</text>\n";
}

double Drawing::paragraph(std::string_view words, Text line, double width, size_t limit,
                          double distance) {
  const int room = static_cast<int>(width / (line.size * kLetterWidth));
  for (const std::string& part : wrap_columns(words, room, limit)) {
    text(part, line);
    line.y += distance;
  }
  return line.y;
}

double Drawing::heading(std::string_view title, double picture_width) {
  constexpr double kAscent = 14;
  const Text first{.x = kPad, .y = kPad + kAscent, .size = 16, .style = "strong"};
  return paragraph(title, first, picture_width - 2 * kPad, 3, 22) - kAscent;
}

void Drawing::tooltip(std::string_view words) {
  body_ += "<title>" + xml(label(words, 400)) + "</title>";
}

std::string Drawing::paint(int step) {
  painted_.insert(step);
  return "s" + std::to_string(step);
}

std::string Drawing::ink_on(int step) {
  inked_.insert(step);
  return "i" + std::to_string(step);
}

void Drawing::scale_bar(double x, double y, double width, float top) {
  constexpr int kParts = 32;
  const double part = width / kParts;
  for (int i = 0; i < kParts; ++i)
    add("<rect class=\"" + paint((2 * i + 1) * kColourSteps / (2 * kParts)) + "\" x=\"" +
        number(x + i * part) + "\" y=\"" + number(y) + "\" width=\"" +
        number(part + (i + 1 < kParts ? 0.5 : 0)) + "\" height=\"8\"/>\n");  // overlaps the next
  add("<rect class=\"frame\" x=\"" + number(x) + "\" y=\"" + number(y) + "\" width=\"" +
      number(width) + "\" height=\"8\"/>\n");
  char end[16];
  std::snprintf(end, sizeof end, "%.3g", static_cast<double>(top));
  text("0", {.x = x, .y = y + 20, .size = 10, .style = "faint"});
  text(end, {.x = x + width, .y = y + 20, .size = 10, .style = "faint", .anchor = "end"});
}

void Drawing::group_rules() {
  for (size_t group = 0; group < kGroupColours; ++group) {
    const std::string style = group_style(group);
    const auto rules = [&](const std::string& colour) {
      return ".fovea ." + style + "{stroke:" + colour + "}.fovea .f" + style + "{fill:" + colour +
             "}";
    };
    rule(rules(kOnLight[group]), rules(kOnDark[group]));
  }
}

void Drawing::rule(std::string_view light, std::string_view dark) {
  light_ += light;
  dark_ += dark;
}

std::string Drawing::finish(Size size, std::string_view title, std::string_view description) const {
  const std::string width = number(size.width), height = number(size.height);
  std::string light{kLightRules}, dark{kDarkRules};
  for (int step : painted_) {
    light += fill_rule("s", step, scale_colour(step, false));
    dark += fill_rule("s", step, scale_colour(step, true));
  }
  for (int step : inked_) {
    light += fill_rule("i", step, fovea::ink_on(scale_colour(step, false)));
    dark += fill_rule("i", step, fovea::ink_on(scale_colour(step, true)));
  }
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fovea\" role=\"img\" width=\"" + width +
         "\" height=\"" + height + "\" viewBox=\"0 0 " + width + " " + height + "\">\n<title>" +
         xml(label(title, 400)) + "</title>\n<desc>" + xml(label(description, 2000)) +
         "</desc>\n<style>" + light + light_ + "@media(prefers-color-scheme:dark){" + dark + dark_ +
         "}</style>\n<rect class=\"paper\" width=\"" + width + "\" height=\"" + height + "\"/>\n" +
         body_ + "</svg>\n";
}

}  // namespace fovea

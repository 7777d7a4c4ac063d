#include "view/scatter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/random.h"
#include "xml_scan.h"

namespace fovea {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(ScatterPlot, ShowsEveryPointWithItsName) {
  const std::string svg = svg_scatter({.title = "Words near 'Haus'",
                                       .note = "principal plane",
                                       .points = {{"Haus", 0, 0, 0, true},
                                                  {"H\u00FCtte", 1, 0.5, 0},
                                                  {"drei", -2, 1, 1, true},
                                                  {"vier", -2.1, 1, 1}}});
  EXPECT_EQ(XmlScan(svg).run(), "");
  EXPECT_EQ(count(svg, "<circle"), 4u);
  EXPECT_EQ(count(svg, "stroke-opacity"), 2u);  // a line connects each neighbour with its centre
  for (const char* part : {">Haus</text>", ">H\u00FCtte</text>", ">drei</text>", ">vier</text>",
                           "prefers-color-scheme:dark"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
}

TEST(ScatterPlot, AcceptsAnyWordsAndNumbers) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const double huge = std::numeric_limits<double>::max();
  const std::vector<std::vector<ScatterPoint>> cases{
      {},
      {{"<a&\"b'>", 0, 0, 0}},
      {{"a", 1, 1, 0}, {"b", 1, 1, 0}},
      {{"nan", nan, 0, 0}, {"inf", 0, inf, 0}, {"c", 1, 2, 900}},
      {{"a", -huge, 0, 0}, {"b", huge, 0, 0}, {"c", 1e-300, 0, 0}},
      {{"\xFF\x01", 0, 1e90, 0}, {std::string(5000, 'x'), 0, -1e90, 0}},
  };
  for (const auto& points : cases) {
    const std::string svg = svg_scatter({.title = "<&>", .note = "]]>", .points = points});
    EXPECT_EQ(XmlScan(svg).run(), "");
    EXPECT_EQ(svg.find("=\"nan"), std::string::npos);
    EXPECT_EQ(svg.find("=\"inf"), std::string::npos);
  }
}

// Reads the positions of the names from the picture.
TEST(ScatterPlot, NamesHardlyOverlap) {
  Random random(5);
  ScatterPlot scatter{.title = "", .note = "", .points = {}};
  for (int i = 0; i < 40; ++i)
    scatter.points.push_back(
        {"word" + std::to_string(i), random.normal(), random.normal(), 0, i == 0});
  const std::string svg = svg_scatter(scatter);
  struct Name {
    double x, y, wide;
  };
  std::vector<Name> names;
  for (size_t at = svg.find("<text"); at != svg.npos; at = svg.find("<text", at + 1)) {
    const auto value = [&](const std::string& key) {
      return std::strtod(svg.c_str() + svg.find(key + "=\"", at) + key.size() + 2, nullptr);
    };
    names.push_back({value(" x"), value(" y"), 6 * 0.58 * 12});
  }
  ASSERT_EQ(names.size(), 40u);
  int overlapping = 0;
  for (size_t i = 0; i < names.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      overlapping += std::abs(names[i].x - names[k].x) < names[i].wide - 4 &&
                     std::abs(names[i].y - names[k].y) < 10;
  EXPECT_LE(overlapping, 2);
}

}  // namespace
}  // namespace fovea

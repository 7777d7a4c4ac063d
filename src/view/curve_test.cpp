#include "view/curve.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <sstream>

#include "base/check.h"
#include "xml_scan.h"

namespace fovea {
namespace {

TEST(Curve, HasAxesTicksAndLegend) {
  const std::string svg = svg_chart({.title = "Loss",
                                     .x_name = "update",
                                     .y_name = "loss",
                                     .curves = {{"train", {0, 10'000, 20'000}, {8, 4, 2}},
                                                {"valid", {10'000, 20'000}, {4.5, 3}}}});
  EXPECT_EQ(XmlScan(svg).run(), "");
  for (const char* part : {">train</text>", ">valid</text>", ">update</text>", ">loss</text>",
                           ">10k</text>", ">20k</text>", ">8</text>"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
}

TEST(Curve, DrawsAnyNumbers) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const double huge = std::numeric_limits<double>::max();
  const std::vector<std::vector<double>> cases{
      {},          {1},        {5, 5, 5},        {nan, inf, -inf}, {1, nan, 2}, {-huge, huge},
      {1e-300, 0}, {0, 1e-12}, {1e15, 1e15 + 1}, {-3, -2},         {huge, huge}};
  for (const auto& y : cases) {
    std::vector<double> x;
    for (size_t i = 0; i < y.size(); ++i) x.push_back(static_cast<double>(i));
    for (const Curve& curve : {Curve{"a", x, y}, Curve{"b", y, x}}) {
      const std::string svg =
          svg_chart({.title = "<&>", .x_name = "x", .y_name = "y", .curves = {curve}});
      EXPECT_EQ(XmlScan(svg).run(), "");
      EXPECT_EQ(svg.find("nan"), std::string::npos);
      EXPECT_EQ(svg.find("inf"), std::string::npos);
    }
  }
  EXPECT_THROW(svg_chart({.title = "", .x_name = "", .y_name = "", .curves = {{"a", {1}, {}}}}),
               Error);
}

TEST(Curve, ManyCurvesLookDifferent) {
  constexpr size_t kCurves = 20;
  Chart chart{.title = "", .x_name = "x", .y_name = "y", .curves = {}};
  for (size_t c = 0; c < kCurves; ++c) chart.curves.push_back({std::to_string(c), {0, 1}, {1, 2}});
  std::set<std::string> looks;
  std::istringstream lines(svg_chart(chart));
  for (std::string line; std::getline(lines, line);)
    if (const size_t at = line.find("<path class=\"k"); at != std::string::npos)
      looks.insert(line.substr(at, line.find(" d=") - at));
  EXPECT_EQ(looks.size(), 2 * kCurves);  // in the legend and in the plot
}

TEST(Curve, StaysSmallForManyPoints) {
  Curve curve{"loss", {}, {}};
  for (int i = 0; i < 500'000; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(i % 7);
  }
  const std::string svg = svg_chart({.title = "", .x_name = "", .y_name = "", .curves = {curve}});
  EXPECT_EQ(XmlScan(svg).run(), "");
  EXPECT_LT(svg.size(), 40'000u);
}

}  // namespace
}  // namespace fovea

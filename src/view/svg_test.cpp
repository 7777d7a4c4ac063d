#include "view/svg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "view/colour.h"
#include "xml_scan.h"

namespace fovea {
namespace {

AttentionMatrix diagonal(std::vector<std::string> words) {
  AttentionMatrix m{.source = words, .target = words, .weights = {}};
  for (size_t i = 0; i < words.size(); ++i)
    for (size_t j = 0; j < words.size(); ++j) m.weights.push_back(i == j ? 0.8f : 0.01f);
  return m;
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

const std::vector<std::string> kNasty{"<script>alert(1)</script>",
                                      "\"quoted\" 'twice'",
                                      "&amp;",
                                      "]]>",
                                      "<!--",
                                      "\u202Eevil\u202C",
                                      std::string("nul\0byte", 8),
                                      "\x1b[31m",
                                      "bad \xff\xc0\x80 bytes",
                                      "\uFFFE\uFFFF",
                                      "\xed\xa0\x80",
                                      "日本語",
                                      "👨‍👩‍👧",
                                      "",
                                      std::string(100'000, 'x')};

TEST(XmlScanner, DetectsErrors) {
  EXPECT_EQ(XmlScan("<a b=\"c\"><d/>x&lt;</a>\n").run(), "");
  for (const char* bad : {"", "<a>", "<a></b>", "<a>&</a>", "<a b=c></a>", "<a b=\"<\"></a>",
                          "<a/><b/>", "x<a/>", "<a>\x01</a>", "<a>\xff</a>", "<a b=\"1></a>"})
    EXPECT_NE(XmlScan(bad).run(), "") << bad;
}

TEST(Svg, HasEveryWordAndWeight) {
  const AttentionMatrix m{.source = {"the", "dog"},
                          .target = {"der", "Hund"},
                          .weights = {0.9f, 0.1f, 0.25f, 0.75f},
                          .title = "Two words"};
  const std::string svg = svg_map(m);
  EXPECT_EQ(XmlScan(svg).run(), "");
  for (const char* part :
       {">the</text>", ">dog</text>", ">der</text>", ">Hund</text>", ">.90</text>", ">.10</text>",
        ">.25</text>", ">.75</text>", "<title>Hund → dog: 0.7500</title>",
        "<title>Two words</title>", "prefers-color-scheme:dark"})
    EXPECT_EQ(count(svg, part), 1u) << part;
  EXPECT_EQ(count(svg, "class=\"best\""), 3u);  // two rows and the legend
  EXPECT_EQ(count(svg, "class=\"cell "), 4u);
  const size_t at = svg.find("<title>der → dog: 0.1000</title>");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(svg.find("x=\"36\" y=\"0\" width=\"36\" height=\"36\"", at), std::string::npos);
  EXPECT_LT(svg.find("x=\"36\" y=\"0\"", at), svg.find("</g>", at));
  for (const char* foreign : {"http", "url(", "@import"})
    EXPECT_EQ(count(svg, foreign), std::string(foreign) == "http" ? 1u : 0u);  // the namespace
}

TEST(Svg, EscapesAnyWords) {
  AttentionMatrix m = diagonal(kNasty);
  m.title = kNasty[0] + kNasty[6] + kNasty[14];
  const std::string svg = svg_map(m, kNasty[4] + " " + kNasty[1]);
  EXPECT_EQ(XmlScan(svg).run(), "");
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("\u202E"), std::string::npos);
  EXPECT_NE(svg.find("xxx…"), std::string::npos);
  EXPECT_LT(svg.size(), 100'000u);
  const std::string grid = svg_grid({.layers = {{m, m}, {m}}, .title = m.title});
  EXPECT_EQ(XmlScan(grid).run(), "");
  EXPECT_EQ(grid.find("<script"), std::string::npos);
}

TEST(Svg, DrawsAnyWeights) {
  const float huge = std::numeric_limits<float>::max(),
              inf = std::numeric_limits<float>::infinity();
  const AttentionMatrix m{.source = {"a", "b", "c", "d", "e", "f"},
                          .target = {"x"},
                          .weights = {std::nanf(""), inf, -inf, huge, -1, 0.3f}};
  const std::string svg = svg_map(m);
  EXPECT_EQ(XmlScan(svg).run(), "");
  EXPECT_EQ(count(svg, "cell unknown"), 5u);
  EXPECT_EQ(strongest(m, 0), 5u);
  EXPECT_EQ(XmlScan(svg_map({})).run(), "");
  EXPECT_THROW(svg_map({.source = {"a"}, .target = {"b"}, .weights = {}}), Error);
}

TEST(Svg, StaysUsableForLongSentences) {
  const std::vector<std::string> words(300, "w");
  const std::string svg = svg_map(diagonal(words));
  EXPECT_EQ(XmlScan(svg).run(), "");
  EXPECT_EQ(count(svg, "class=\"best\""), 301u);
}

TEST(Svg, GridHasAllHeads) {
  const AttentionMatrix m = diagonal({"a", "b", "c"});
  const std::string svg = svg_grid({.layers = {{m, m, m}, {m, m, m}}});
  EXPECT_EQ(XmlScan(svg).run(), "");
  EXPECT_EQ(count(svg, "<title>layer 1, head 2</title>"), 1u);
  EXPECT_EQ(count(svg, ">head 2</text>"), 1u);
  EXPECT_EQ(count(svg, "class=\"frame\" width"), 6u);
  EXPECT_THROW(svg_grid({}), Error);
  EXPECT_THROW(svg_grid({.layers = {{m}, {diagonal({"a"})}}}), Error);
}

TEST(Matrix, ScaleFollowsTheWeights) {
  const auto top = [](std::vector<float> w) {
    AttentionMatrix m{.source = std::vector<std::string>(w.size()), .target = {"x"}, .weights = w};
    return scale_top(m);
  };
  EXPECT_FLOAT_EQ(top({0.2f, 0.8f}), 1);
  EXPECT_FLOAT_EQ(top({0.22f, 0.1f}), 0.3f);
  EXPECT_FLOAT_EQ(top({0.02f}), 0.02f);
  EXPECT_FLOAT_EQ(top({0, 0}), 1);
  EXPECT_EQ(short_weight(0.999f), "1");
  EXPECT_EQ(short_weight(0.004f), "0");
  EXPECT_EQ(short_weight(0.126f), ".13");
}

TEST(Colour, DarkensWithTheWeightAndKeepsInkReadable) {
  const auto brightness = [](Colour c) { return 299 * c.red + 587 * c.green + 114 * c.blue; };
  for (int step = 1; step <= kColourSteps; ++step) {
    EXPECT_LT(brightness(scale_colour(step, false)), brightness(scale_colour(step - 1, false)));
    EXPECT_GT(brightness(scale_colour(step, true)), brightness(scale_colour(step - 1, true)));
    for (bool dark : {false, true}) {
      const Colour ground = scale_colour(step, dark);
      EXPECT_GT(std::abs(brightness(ground) - brightness(ink_on(ground))), 100'000);
    }
  }
  EXPECT_EQ(scale_step(0, 1), 0);
  EXPECT_EQ(scale_step(0.006f, 1), 1);
  EXPECT_EQ(scale_step(2, 1), kColourSteps);
}

}  // namespace
}  // namespace fovea

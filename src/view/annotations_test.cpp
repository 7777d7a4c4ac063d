#include "view/annotations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "view/label.h"
#include "view/svg.h"
#include "view/terminal.h"
#include "xml_scan.h"

namespace fovea {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

bool holds(const std::string& text, const std::string& part) { return count(text, part) > 0; }

// A map of three target words and four source words.
AttentionMatrix map_with(MatrixAnnotations marks) {
  AttentionMatrix m{.source = {"a", "small", "brown", "dog"},
                    .target = {"ein", "kleiner", "Hund"},
                    .weights = {0.9f, 0.1f, 0, 0, 0, 0.7f, 0.3f, 0, 0, 0, 0.2f, 0.8f},
                    .title = {},
                    .marks = {}};
  m.marks = std::move(marks);
  return m;
}

using Kind = MatrixSeries::Kind;
using Places = std::vector<std::vector<float>>;

MatrixAnnotations only(Kind kind, const Places& places) {
  return {.series = {{kind, "kappa", "κ", places}}};
}

MatrixSeries bells(float sigma) {
  return {Kind::gaussian,
          "p_t",
          "p_t",
          {{0.2f, sigma, -0.5f, 1.5f}, {1.1f, sigma, -0.5f, 2.5f}, {2.6f, sigma, 1.5f, 3.5f}}};
}

AttentionMatrix local() {
  return map_with(
      {.series = {{Kind::position, "p_t", "p_t", {{0.2f}, {1.1f}, {2.6f}}},
                  {Kind::window, "window", "D", {{-0.5f, 1.5f}, {-0.5f, 2.5f}, {1.5f, 3.5f}}},
                  bells(0.5f)},
       .note = "within the window"});
}

TEST(MatrixAnnotations, TerminalShowsTheMiddleOfTheWindowAndWhatIsOutside) {
  const std::string text = terminal_map(local(), {.shades = TerminalShades::blocks});
  EXPECT_TRUE(holds(text, "    ein █◆▁▁ · ·")) << text;
  EXPECT_TRUE(holds(text, "kleiner   ▆◆▃▃ ·")) << text;
  EXPECT_TRUE(holds(text, "   Hund  · ·▂▂▇◆")) << text;
  EXPECT_TRUE(holds(text, "◆ p_t   · outside the window\n")) << text;
  EXPECT_TRUE(holds(text, "        ▂▅█▅▂  Gaussian around p_t, σ 0.5\n")) << text;
  EXPECT_TRUE(holds(text, "within the window\n"));
}

TEST(MatrixAnnotations, TerminalHasPlainCharactersIfRequested) {
  AttentionMatrix m = local();
  m.marks.series.push_back({Kind::centres, "kappa", "κ", {{0, 0.1f}, {1}, {9}}});
  for (const char c : terminal_map(m, {.shades = TerminalShades::ascii}))
    EXPECT_LT(static_cast<unsigned char>(c), 0x80);
}

TEST(MatrixAnnotations, TerminalCountsKappaAndShowsChoicesAndTheFrontier) {
  const std::string kappa =
      terminal_map(map_with(only(Kind::centres, {{0, 0.4f}, {1, 2}, {3, 17}})),
                   {.shades = TerminalShades::blocks});
  EXPECT_TRUE(holds(kappa, "ein █2▁▁"));
  EXPECT_TRUE(holds(kappa, "kleiner   ▆•▃•"));
  EXPECT_TRUE(holds(kappa, "Hund     ▂▂▇•"));
  EXPECT_TRUE(holds(kappa, "• κ, a number where there are several"));
  const std::string hard = terminal_map(map_with(only(Kind::chosen, {{0}, {1, 2}, {3}})),
                                        {.shades = TerminalShades::blocks});
  EXPECT_TRUE(holds(hard, "▆■▃■"));
  EXPECT_TRUE(holds(hard, "■ the word chosen"));
  const std::string forward =
      terminal_map(map_with(only(Kind::frontier, {{-0.5f}, {0.5f}, {1.5f}})),
                   {.shades = TerminalShades::blocks});
  EXPECT_TRUE(holds(forward, "kleiner  ·▆<▃▃"));
  EXPECT_TRUE(holds(forward, "Hund  · ·▂▂▇<"));
  EXPECT_TRUE(holds(forward, "· behind the frontier"));
}

TEST(MatrixAnnotations, TerminalPaintsThemInColour) {
  const std::string text = terminal_map(local(), {.shades = TerminalShades::colours_24_bit});
  EXPECT_TRUE(holds(text, "[◆"));
  EXPECT_TRUE(holds(text, "\x1b[2m ·\x1b[0m"));
}

// Two series of one kind are two lines and two signs, with their own labels.
TEST(MatrixAnnotations, SeveralSeriesOfOneKind) {
  const AttentionMatrix m =
      map_with({.series = {{Kind::position, "last", "→h", {{3}, {3}, {3}}},
                           {Kind::position, "first", "←h", {{0}, {0}, {0}}}}});
  const std::string svg = svg_map(m);
  EXPECT_EQ(XmlScan(svg).run(), "");
  EXPECT_TRUE(holds(svg, "M126 29.52")) << svg;
  EXPECT_TRUE(holds(svg, "M18 29.52"));
  for (const char* part : {">→h</text>", ">←h</text>"}) EXPECT_EQ(count(svg, part), 1u) << part;
  const std::string text = terminal_map(m, {.shades = TerminalShades::blocks});
  EXPECT_TRUE(holds(text, "Hund  ◆  ▂▂▇◆")) << text;
  EXPECT_TRUE(holds(text, "◆ →h   ◆ ←h\n")) << text;
  EXPECT_TRUE(holds(terminal_map(m, {.shades = TerminalShades::ascii}), "o last   o first\n"));
}

TEST(MatrixAnnotations, OneRowIsDrawnForAll) {
  AttentionMatrix m = map_with({.rows = MatrixAnnotations::Rows::same, .note = "computed once"});
  for (size_t k = 4; k < 12; ++k) m.weights[k] = m.weights[k % 4];
  const std::string text = terminal_map(m, {.shades = TerminalShades::blocks});
  EXPECT_TRUE(holds(text, "every word █<▁▁"));
  EXPECT_FALSE(holds(text, "kleiner"));
  EXPECT_TRUE(holds(text, "computed once\n"));
  const std::string svg = svg_map(m);
  EXPECT_EQ(XmlScan(svg).run(), "");
  EXPECT_TRUE(holds(svg, "<title>a: 0.9000</title>"));
  EXPECT_TRUE(holds(svg, ">computed once</text>"));
  EXPECT_FALSE(holds(svg, "kleiner"));
}

TEST(MatrixAnnotations, SvgDrawsLineWindowAndGaussian) {
  const std::string svg = svg_map(local());
  EXPECT_EQ(XmlScan(svg).run(), "");
  // Cells are 36 wide: p_t = 0.2 is at 36 × 0.7, below the digits of the first row.
  EXPECT_TRUE(holds(svg, "d=\"M25.2 29.52 L57.6 65.52 L111.6 101.52 \"")) << svg;
  EXPECT_TRUE(holds(svg, "d=\"M72 0 V36L108 36 V72L144 72 V108\""));  // right ends
  EXPECT_EQ(count(svg, "class=\"bound\""), 3u);                       // two ends and the legend
  EXPECT_EQ(count(svg, "stroke-opacity=\"0.85\""), 3u);               // a Gaussian for each row
  for (const char* part :
       {">p_t</text>", ">Gaussian around p_t</text>", ">ends of the window</text>"})
    EXPECT_EQ(count(svg, part), 1u) << part;
}

TEST(MatrixAnnotations, SvgDrawsKappaChoicesAndFrontier) {
  const std::string kappa = svg_map(map_with(only(Kind::centres, {{0, 1.4f}, {1, 2}, {3, 17}})));
  EXPECT_EQ(XmlScan(kappa).run(), "");
  EXPECT_EQ(count(kappa, "class=\"dot\" cx"), 6u);  // five and the legend's
  EXPECT_EQ(count(kappa, "class=\"far\" cx"), 2u);  // one and the legend's
  EXPECT_TRUE(holds(kappa, "class=\"far\" cx=\"144\" cy=\"101.52\""));
  const std::string hard = svg_map(map_with(only(Kind::chosen, {{0}, {1, 2}, {3}})));
  EXPECT_EQ(XmlScan(hard).run(), "");
  EXPECT_EQ(count(hard, "class=\"mark\" fill=\"none\" stroke-width=\"2.5\""), 5u);
  EXPECT_EQ(count(hard, "class=\"best\""), 0u);
  const std::string forward = svg_map(map_with(only(Kind::frontier, {{-0.5f}, {0.5f}, {1.5f}})));
  EXPECT_EQ(XmlScan(forward).run(), "");
  EXPECT_TRUE(holds(forward, "d=\"M0 0 V36L36 36 V72L72 72 V108\""));
}

TEST(MatrixAnnotations, AnyNumbersAreDrawn) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  AttentionMatrix m = map_with(
      {.series = {{Kind::position, "p", "p", {{nan}, {inf}, {1e30f}}},
                  {Kind::window, "w", "w", {{nan, nan}, {-inf, inf}, {1e30f, -1e30f}}},
                  {Kind::gaussian,
                   "g",
                   "g",
                   {{nan, 0, nan, nan}, {inf, nan, -inf, inf}, {1e30f, 1e30f, 1e30f, -1e30f}}},
                  {Kind::gaussian,
                   "g",
                   "g",
                   {{0, 1, nan, nan}, {1, 1, -inf, inf}, {2, 1e30f, 1e30f, -1e30f}}},
                  {Kind::centres, "k", "k", {{nan}, {inf, -inf}, {-1e30f}}},
                  {Kind::chosen, "c", "c", {{}, {0}, {1}}},
                  {Kind::frontier, "f", "f", {{nan}, {inf}, {-inf}}}},
       .note = "<b>&\x1b[2J"});
  EXPECT_EQ(XmlScan(svg_map(m)).run(), "");
  for (const char* bad : {"nan", "inf"}) EXPECT_FALSE(holds(svg_map(m), bad));
  const std::string text = terminal_map(m, {});
  EXPECT_FALSE(holds(text, "\x1b[2J"));
}

TEST(MatrixAnnotations, RefusesMarksOfAnotherShape) {
  EXPECT_THROW(svg_map(map_with(only(Kind::position, {{1}}))), Error);
  EXPECT_THROW(svg_map(map_with(only(Kind::window, {{1}, {1}, {1}}))), Error);
  EXPECT_THROW(terminal_map(map_with(only(Kind::centres, {{1}})), {}), Error);
  EXPECT_THROW(svg_map(map_with(only(Kind::chosen, {{0}, {4}, {0}}))), Error);
  EXPECT_THROW(svg_map(map_with(only(Kind::chosen, {{0}, {NAN}, {0}}))), Error);
}

TEST(MatrixAnnotations, LegendFitsTheWidth) {
  AttentionMatrix m = local();
  m.marks.note = "a note that is much longer than the terminal is wide, and must be folded";
  m.marks.series.back() = bells(30);
  for (const int width : {30, 40, 80}) {
    const std::string text = terminal_map(m, {.shades = TerminalShades::blocks, .width = width});
    for (size_t at = 0; at < text.size();) {
      const size_t end = text.find('\n', at);
      EXPECT_LE(columns(text.substr(at, end - at)), std::max(width, 40));
      at = end + 1;
    }
  }
}

}  // namespace
}  // namespace fovea

#include "view/html_report.h"

#include <gtest/gtest.h>

#include "view/curve.h"
#include "view/svg.h"
#include "xml_scan.h"

namespace fovea {
namespace {

std::string after_doctype(const std::string& html) {
  const std::string doctype = "<!DOCTYPE html>\n";
  EXPECT_TRUE(html.starts_with(doctype));
  return html.substr(doctype.size());
}

HtmlReport page_with(const std::string& words) {
  const AttentionMatrix m{.source = {words}, .target = {"y"}, .weights = {1}};
  return {words,
          {PageHeading{words}, PageText{words}, PageTable{{"a", words}, {{words, "1"}, {"x"}}, 1},
           PageFigures{
               {{words, svg_map(m), words},
                {"", svg_chart({.title = words, .x_name = "x", .y_name = "y", .curves = {}})}}}}};
}

TEST(HtmlReport, IsWholeAndNeedsNothingFromElsewhere) {
  const std::string html = html_page(page_with("a dog"));
  EXPECT_EQ(XmlScan(after_doctype(html)).run(), "");
  for (const char* foreign : {"<script", "<link", "src=", "href=", "url(", "@import"})
    EXPECT_EQ(html.find(foreign), std::string::npos) << foreign;
  EXPECT_NE(html.find("<th class=\"t\">a</th><th>a dog</th>"), std::string::npos);
  EXPECT_NE(html.find("prefers-color-scheme:dark"), std::string::npos);
}

TEST(HtmlReport, SurvivesAnyWords) {
  for (const std::string& words :
       {std::string("<script>alert(1)</script>"), std::string("&amp; ]]> <!-- \"'"),
        std::string("\x1b[2J\0\xff\xc0", 7), std::string(), std::string(100'000, 'x')}) {
    const std::string html = html_page(page_with(words));
    EXPECT_EQ(XmlScan(after_doctype(html)).run(), "") << words.substr(0, 30);
    EXPECT_EQ(html.find("<script"), std::string::npos);
  }
}

TEST(HtmlReport, MarkdownHoldsTablesAndWords) {
  const HtmlReport page{"T",
                        {PageTable{{"model", "BLEU"}, {{"a|b", "1.0"}}, 1}, PageText{"x <b>"}}};
  EXPECT_EQ(markdown_page(page),
            "# T\n\n| model | BLEU |\n|---|--:|\n| a\\|b | 1.0 |\n\nx \\<b>\n\n");
}

}  // namespace
}  // namespace fovea

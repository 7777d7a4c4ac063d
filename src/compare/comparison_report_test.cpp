#include "compare/comparison_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "xml_scan.h"

namespace fovea {
namespace {

ComparisonReport sample() {
  ComparisonReport c;
  c.title = "Comparison: sample";
  c.sentence = "a <small> dog";
  c.reference = "ein kleiner Hund";
  c.line = 5;
  c.aer = true;
  c.buckets = {{1, 5, 4.5, {0, 1}}, {6, 9, 7, {2}}};
  ModelResults m;
  m.ppl = 5.125;
  m.bleu = 35.5;
  m.chrf = 60.25;
  m.aer = 0.3;
  m.decode_words_per_s = 12345.6;
  m.bucket_bleu = {40, 30};
  m.translation = "ein Hund";
  c.models.push_back({"global", {"model.attention: global"}, 1234567, 800, 4321.0, m});
  c.models.back().attention = AttentionMatrix{.source = {"a"}, .target = {"ein"}, .weights = {1}};
  m.aer.reset();
  c.models.push_back({"none", {"model.attention: none"}, 1000, 800, {}, m});
  c.models.push_back({"later", {}, 0, 0, {}, {}});
  c.models.push_back({"wild", {}, 0, 0, {}, {}, {}, "diverged"});
  return c;
}

TEST(ComparisonReport, MarkdownHasOneRowPerModel) {
  const std::string text = comparison_markdown(sample());
  for (const char* row :
       {"| global | 5.12 | 35.50 | 60.25 | 30.00 | 1,234,567 | 800 | 4,321 | "
        "12,346 |",
        "| none | 5.12 | 35.50 | 60.25 | – | 1,000 | 800 | – | 12,346 |",
        "| later | not finished | – | – | – | – | – | – | – |",
        "| wild | diverged | – | – | – | – | – | – | – |", "| source words | 1–5 | 6–9 |",
        "| sentences | 2 | 1 |", "| global | 40.0 | 30.0 |"})
    EXPECT_NE(text.find(row), std::string::npos) << row << "\n" << text;
}

TEST(ComparisonReport, JsonHoldsNumbersAndNulls) {
  const auto json = nlohmann::json::parse(comparison_json(sample()));
  EXPECT_EQ(json["models"].size(), 4u);
  EXPECT_EQ(json["models"][0]["bleu"], 35.5);
  EXPECT_TRUE(json["models"][1]["aer"].is_null());
  EXPECT_EQ(json["models"][3]["failure"], "diverged");
  EXPECT_EQ(json["lengths"][1]["sentences"], 1);
}

TEST(ComparisonReport, PageIsWellFormedAndShowsEveryMechanism) {
  const std::string html = comparison_html(sample());
  EXPECT_EQ(XmlScan(html.substr(html.find('\n') + 1)).run(), "");
  EXPECT_NE(html.find("<p>Its own translation: ein Hund</p>"), std::string::npos);
  EXPECT_NE(html.find("<figcaption>none</figcaption><p>No attention"), std::string::npos);
  EXPECT_NE(html.find("BLEU by source length"), std::string::npos);
  EXPECT_EQ(html.find("<small>"), std::string::npos);
}

}  // namespace
}  // namespace fovea

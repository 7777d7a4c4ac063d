#include "document/html_entities.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Entities, AreRead) {
  EXPECT_EQ(without_entities("a &amp; b &lt;c&gt; &auml;&#228;&#xE4; &nope; &#0; &"),
            "a & b <c> äää &nope; &#0; &");
  EXPECT_EQ(without_entities("&nbsp;&yuml;"), "\u00A0ÿ");
  EXPECT_EQ(without_entities("&AElig;&zwnj;&rarr;&hearts;&ge;&percnt;&check;&fjlig;"),
            "Æ\u200C→♥≥%✓fj");
  EXPECT_EQ(without_entities("&CounterClockwiseContourIntegral;&Tab;&NewLine;"), "∳\t\n");
}

TEST(Entities, OfOldPagesAreRead) {
  EXPECT_EQ(without_entities("&eacute &copy, &amp"), "é ©, &");
  EXPECT_EQ(without_entities("&AMP &LT &GT &QUOT &COPY &REG"), "& < > \" © ®");
  EXPECT_EQ(without_entities("?a=1&copy=2&rarr &pm &#228"), "?a=1&copy=2&rarr &pm &#228");
  EXPECT_EQ(without_entities("it&#146;s &#x96; &#128;"), "it’s – €");
}

TEST(Entities, AreTheLengthTheyAre) {
  EXPECT_EQ(reference_at("&amp;amp;").length, 5u);
  EXPECT_EQ(reference_at("&nope;").length, 6u);
  EXPECT_EQ(reference_at("&nope;").text, "");
  EXPECT_EQ(reference_at("&#1114112;").length, 10u);
  EXPECT_EQ(reference_at("&#1114112;").text, "");
  EXPECT_EQ(reference_at("&#99999999999;").length, 14u);
  for (const char* none : {"&", "&;", "& amp;", "&#", "&#;", "&#x;", "&#xg;", "&nope", "&1;"})
    EXPECT_EQ(reference_at(none).length, 0u) << none;
  EXPECT_EQ(reference_at("&" + std::string(1000, 'a') + ";").length, 0u);
}

TEST(Entities, AreWrittenWhereTheyMustBe) {
  EXPECT_EQ(with_entities("a < b & c > ä \""), "a &lt; b &amp; c &gt; ä \"");
  EXPECT_EQ(with_entities("a < &amp; >", AmpersandMode::kept), "a &lt; &amp; &gt;");
}

}  // namespace
}  // namespace fovea

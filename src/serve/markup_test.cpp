#include "serve/markup.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "serve/passage.h"
#include "text/pieces.h"

namespace fovea {
namespace {

// A translation that turns each word into upper case and puts the words in the given order.
Translation shouted(const std::string& sentence, bool reversed) {
  const auto words = split_words(sentence);
  Alternative best;
  for (size_t i = 0; i < words.size(); ++i) {
    const size_t from = reversed ? words.size() - 1 - i : i;
    std::string word(words[from]);
    for (char& c : word)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
    best.text += (i ? " " : "") + word;
    best.alignment.emplace_back(static_cast<int>(from), static_cast<int>(i));
  }
  return {.text = best.text, .n_best = {best}, .source_ids = {}, .source_pieces = {}};
}

std::string translated(const std::string& html, bool reversed = false) {
  const auto passage = html_passage(html, "en");
  std::vector<Translation> translations;
  for (const std::string& s : passage->sentences()) translations.push_back(shouted(s, reversed));
  return passage->render(translations, 0);
}

TEST(Markup, BlocksCommentsAndScriptsStay) {
  EXPECT_EQ(translated("<p>one two</p>\n<!-- no --><script>if (a < b) c();</script><br>three"),
            "<p>ONE TWO</p>\n<!-- no --><script>if (a < b) c();</script><br>THREE");
  EXPECT_EQ(translated("<div class=\"a>b\">x</div>"), "<div class=\"a>b\">X</div>");
  EXPECT_EQ(translated("<p>\n  text here\n</p>"), "<p>\n  TEXT HERE\n</p>");
  EXPECT_EQ(translated("<code>keep me</code> but not me"), "<code>keep me</code> BUT NOT ME");
  EXPECT_EQ(translated("<p></p> <hr>"), "<p></p> <hr>");
  for (const char* open : {"<p class=\"a> b", "<img alt='a> b", "<b a=\"> <i>dog</i>\"c\" d"})
    EXPECT_EQ(translated(std::string("one ") + open), std::string("ONE ") + open);
}

TEST(Markup, WhatIsNotToBeTranslatedStays) {
  for (const char* kept :
       {"<div translate=\"no\">a <div>b</div> c</div>", "<p class=x translate='no'>a</p>",
        "<p TRANSLATE = no>a</p>", "<svg><svg/><svg>a</svg>b</svg>", "<script>'<script>'</script>"})
    EXPECT_EQ(translated(std::string("one ") + kept + " two"), std::string("ONE ") + kept + " TWO");
  for (const char* tag : {"<img translate=\"no\">", "<p data-translate=\"no\">",
                          "<p translate=\"yes\">", "<p translate=nothing>", "<p translate>"})
    EXPECT_EQ(translated(std::string("<hr>") + tag + "two"), std::string("<hr>") + tag + "TWO");
}

TEST(Markup, ElementsGoWithTheirWords) {
  EXPECT_EQ(translated("a <b>small dog</b> runs"), "A <b>SMALL DOG</b> RUNS");
  EXPECT_EQ(translated("a <b>small dog</b> runs", true), "RUNS <b>DOG SMALL</b> A");
  EXPECT_EQ(translated("a <b>very <i>small</i></b> dog"), "A <b>VERY <i>SMALL</i></b> DOG");
  EXPECT_EQ(translated("<b>One. Two.</b> three"), "<b>ONE. TWO.</b> THREE");
  EXPECT_EQ(translated("see <a href='x'>this</a>"), "SEE <a href='x'>THIS</a>");
}

// "a small dog" became "X Y", and X and Y both look at the dog; X looks at "small" next.
TEST(Markup, AnElementTakesTheWordThatIsNearest) {
  const auto passage = html_passage("a <b>small</b> dog", "en");
  const auto rendered = [&](std::vector<int> nearest) {
    std::vector<Translation> found{shouted("x y", false)};
    found[0].n_best[0].alignment = {{2, 0}, {2, 1}};
    found[0].n_best[0].nearest = std::move(nearest);
    return passage->render(found, 0);
  };
  EXPECT_EQ(rendered({0, 0, 1}), "<b>X</b> Y");
  EXPECT_EQ(rendered({0, 1, 1}), "X <b>Y</b>");
  EXPECT_EQ(rendered({0, -1, 1}), "<b></b>X Y");
  EXPECT_EQ(rendered({0, 7, 1}), "<b></b>X Y");
}

TEST(Markup, ElementsWithoutWordsAreKept) {
  EXPECT_EQ(translated("one <img src=x> two"), "ONE <img src=x>TWO");
  EXPECT_EQ(translated("<a name=top></a>one"), "<a name=top></a>ONE");
  EXPECT_EQ(translated("one<wbr>"), "ONE<wbr>");
}

TEST(Markup, TagsWithoutPartnersStayAtTheirPlace) {
  EXPECT_EQ(translated("one <b>two"), "ONE <b>TWO");
  EXPECT_EQ(translated("one</b> two"), "ONE</b> TWO");
  EXPECT_EQ(translated("<b>one <i>two</b> three</i>"), "<b>ONE <i>TWO</b> THREE</i>");
  EXPECT_EQ(translated("1 < 2 and <3"), "1 &lt; 2 AND &lt;3");
}

TEST(Markup, EntitiesAreRead) {
  EXPECT_EQ(without_entities("a &amp; b &lt;c&gt; &auml;&#228;&#xE4; &nope; &#0; &"),
            "a & b <c> äää &nope; &#0; &");
  EXPECT_EQ(without_entities("&nbsp;&yuml;"), "\u00A0ÿ");
  EXPECT_EQ(translated("a &lt;b&gt; &amp; c"), "A &lt;B&gt; &amp; C");
}

// Whatever comes in, every tag comes out, as often as it came in or (split) more often.
TEST(Markup, NothingIsLostOfRandomMarkup) {
  const std::vector<std::string> parts = {"<b>",
                                          "</b>",
                                          "<i>",
                                          "</i>",
                                          "<p>",
                                          "</p>",
                                          "<br>",
                                          "word",
                                          " ",
                                          "two ",
                                          ". ",
                                          "<",
                                          ">",
                                          "&",
                                          "<img>",
                                          "\"",
                                          "<!--x-->",
                                          "'",
                                          "<a href=\"u\">",
                                          "</a>"};
  Random random(7);
  for (int round = 0; round < 3000; ++round) {
    std::string html;
    for (uint64_t n = random.below(30); n > 0; --n) html += parts[random.below(parts.size())];
    const auto tags = [](const std::string& text) {
      std::vector<std::string> found;
      for (const MarkupToken& token : cut_markup(text))
        if (token.kind != MarkupToken::Kind::text) found.emplace_back(token.bytes);
      std::ranges::sort(found);
      found.erase(std::unique(found.begin(), found.end()), found.end());
      return found;
    };
    EXPECT_EQ(tags(translated(html, round % 2 == 1)), tags(html)) << html;
    std::string joined;
    for (const MarkupToken& token : cut_markup(html)) joined += token.bytes;
    EXPECT_EQ(joined, html);
  }
}

}  // namespace
}  // namespace fovea

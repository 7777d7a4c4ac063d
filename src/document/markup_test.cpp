#include "document/markup.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/random.h"
#include "document/document.h"
#include "support/html_documents.h"
#include "text/tokenization.h"

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
  const auto document = html_document(html, "en");
  std::vector<Translation> translations;
  for (const std::string& s : document->sentences()) translations.push_back(shouted(s, reversed));
  return document->render(translations, 0);
}

TEST(Markup, BlocksCommentsAndScriptsAreCopied) {
  EXPECT_EQ(translated("<p>one two</p>\n<!-- no --><script>if (a < b) c();</script><br>three"),
            "<p>ONE TWO</p>\n<!-- no --><script>if (a < b) c();</script><br>THREE");
  EXPECT_EQ(translated("<div class=\"a>b\">x</div>"), "<div class=\"a>b\">X</div>");
  EXPECT_EQ(translated("<p>\n  text here\n</p>"), "<p>\n  TEXT HERE\n</p>");
  EXPECT_EQ(translated("<code>keep me</code> but not me"), "<code>keep me</code> BUT NOT ME");
  EXPECT_EQ(translated("<p></p> <hr>"), "<p></p> <hr>");
  for (const char* open : {"<p class=\"a> b", "<img alt='a> b", "<b a=\"> <i>dog</i>\"c\" d"})
    EXPECT_EQ(translated(std::string("one ") + open), std::string("ONE ") + open);
}

TEST(Markup, ContentThatIsNotTranslatedIsCopied) {
  for (const char* kept :
       {"<div translate=\"no\">a <div>b</div> c</div>", "<p class=x translate='no'>a</p>",
        "<p TRANSLATE = no>a</p>", "<svg><svg/><svg>a</svg>b</svg>", "<script>'<script>'</script>"})
    EXPECT_EQ(translated(std::string("one ") + kept + " two"), std::string("ONE ") + kept + " TWO");
  for (const char* tag : {"<img translate=\"no\">", "<p data-translate=\"no\">",
                          "<p translate=\"yes\">", "<p translate=nothing>", "<p translate>"})
    EXPECT_EQ(translated(std::string("<hr>") + tag + "two"), std::string("<hr>") + tag + "TWO");
}

// Otherwise the text of an attribute would be translated and could end the attribute elsewhere.
TEST(Markup, CopiedContentEndsWhereBrowsersEndIt) {
  for (const char* kept :
       {"<span translate=\"no\"><i title=\"</span>a\">b</i></span>",
        "<code><b title='</code><code>'>a</b></code>", "<pre><!-- </pre> --> a</pre>",
        "<pre title=a><!--> a</pre>", "<pre><!-- a --!> b</pre>",
        "<script>'\"</script title=\">\">", "<code>1 < 2 </ a> b</code>", "<!--> ", "<!-- a --!> "})
    EXPECT_EQ(translated(std::string("one ") + kept + " two"), std::string("ONE ") + kept + " TWO");
}

TEST(Markup, ElementsMoveWithTheirWords) {
  EXPECT_EQ(translated("a <b>small dog</b> runs"), "A <b>SMALL DOG</b> RUNS");
  EXPECT_EQ(translated("a <b>small dog</b> runs", true), "RUNS <b>DOG SMALL</b> A");
  EXPECT_EQ(translated("a <b>very <i>small</i></b> dog"), "A <b>VERY <i>SMALL</i></b> DOG");
  EXPECT_EQ(translated("<b>One. Two.</b> three"), "<b>ONE. TWO.</b> THREE");
  EXPECT_EQ(translated("see <a href='x'>this</a>"), "SEE <a href='x'>THIS</a>");
}

// "a small dog" is translated as "X Y". X and Y both attend to the dog; X attends to "small" next.
TEST(Markup, AnEmptyElementReceivesTheNearestWord) {
  const auto document = html_document("a <b>small</b> dog", "en");
  const auto rendered = [&](std::vector<int> nearest) {
    std::vector<Translation> found{shouted("x y", false)};
    found[0].n_best[0].alignment = {{2, 0}, {2, 1}};
    found[0].n_best[0].nearest = std::move(nearest);
    return document->render(found, 0);
  };
  EXPECT_EQ(rendered({0, 0, 1}), "<b>X</b> Y");
  EXPECT_EQ(rendered({0, 1, 1}), "X <b>Y</b>");
  EXPECT_EQ(rendered({0, -1, 1}), "<b></b>X Y");
  EXPECT_EQ(rendered({0, 7, 1}), "<b></b>X Y");
}

TEST(Markup, ElementsWithoutWordsAreKept) {
  EXPECT_EQ(translated("one <img src=x> two"), "ONE <img src=x> TWO");
  EXPECT_EQ(translated("<a name=top></a>one"), "<a name=top></a>ONE");
  EXPECT_EQ(translated("one<wbr>"), "ONE<wbr>");
}

TEST(Markup, TagsWithoutPartnersStayAtTheirPlace) {
  EXPECT_EQ(translated("one <b>two"), "ONE <b>TWO");
  EXPECT_EQ(translated("one</b> two"), "ONE</b> TWO");
  EXPECT_EQ(translated("<b>one <i>two</b> three</i>"), "<b>ONE <i>TWO</b> THREE</i>");
  EXPECT_EQ(translated("1 < 2 and <3"), "1 &lt; 2 AND &lt;3");
}

TEST(Markup, EntitiesAreText) {
  EXPECT_EQ(translated("a &lt;b&gt; &amp; c"), "A &lt;B&gt; &amp; C");
  EXPECT_EQ(translated("100&percnt; caf&eacute; &amp;rarr;"), "100% CAFé &amp;RARR;");
}

TEST(Markup, ReferencesToSymbolsAndUnknownOnesStay) {
  EXPECT_EQ(translated("read more &rarr;"), "READ MORE &rarr;");
  EXPECT_EQ(translated("we &hearts; dogs", true), "&hearts; DOGS WE");
  EXPECT_EQ(html_document("we &hearts; dogs", "en")->sentences().front(), "we dogs");
  EXPECT_EQ(translated("one&nope; two &nope;three &#0; <b>four</b>"),
            "ONE&nope; TWO &nope;THREE &#0; <b>FOUR</b>");
  EXPECT_EQ(html_document("20&deg;C and x &lt; y", "en")->sentences().front(), "20°C and x < y");
}

TEST(Markup, AdjacentLinksAreSeparateSentences) {
  const std::string menu = "<a href=1>home</a><a href=2>about us</a>";
  EXPECT_EQ(html_document(menu, "en")->sentences(), (std::vector<std::string>{"home", "about us"}));
  EXPECT_EQ(translated("<nav>" + menu + "</nav>", true),
            "<nav><a href=1>HOME</a><a href=2>US ABOUT</a></nav>");
  EXPECT_EQ(translated("<i><a>one</a><a>two three</a></i>", true),
            "<i><a>ONE</a><a>THREE TWO</a></i>");
  EXPECT_EQ(translated("<label><input>a b</label><label><input>c</label>", true),
            "<label><input>B A</label><label><input>C</label>");
  EXPECT_EQ(html_document("see <a>this</a> and <b>a</b><a>b</a>", "en")->sentences(),
            std::vector<std::string>{"see this and ab"});
}

TEST(Markup, AdjacentElementsStaySeparate) {
  EXPECT_EQ(translated("see <a href=1>one</a>."), "SEE <a href=1>ONE</a>.");
  EXPECT_EQ(translated("one.<sup><a>[1]</a></sup>"), "ONE.<sup><a>[1]</a></sup>");
  EXPECT_EQ(translated("<b>one</b>/<i>two</i>."), "<b>ONE/TWO</b>.<i></i>");
  EXPECT_EQ(translated("(<a>one</a>) <b>two</b>, <i>three</i>!", true),
            "<i>THREE</i>! <b>TWO</b>, (<a>ONE</a>)");
  EXPECT_EQ(translated("H<sub>2</sub>O and m<sup>2</sup>"), "H<sub>2</sub>O AND M<sup>2</sup>");
  EXPECT_EQ(translated("<b>ONE</b><i>TWO</i>"), "<b>ONE</b><i>TWO</i>") << "not translated";
  EXPECT_EQ(translated("<b>on</b><i>e</i> two"), "<b>ONE</b><i></i> TWO");
  EXPECT_EQ(translated("<u>o</u>ne"), "<u>ONE</u>");
  EXPECT_EQ(translated("<b>!</b><i>?</i> one"), "<b>!</b><i>?</i> ONE");
}

TEST(Markup, ElementsWithoutWordsStayInside) {
  EXPECT_EQ(translated("<a href=x><img src=y> one two</a>"), "<a href=x><img src=y> ONE TWO</a>");
  EXPECT_EQ(translated("one <a href=x><img src=y></a> two"), "ONE <a href=x><img src=y></a> TWO");
  for (const bool reversed : {false, true}) {
    const std::string words = reversed ? "TWO ONE" : "ONE TWO";
    EXPECT_EQ(translated("<label><input>one two</label>", reversed),
              "<label><input>" + words + "</label>");
    EXPECT_EQ(translated("<a>one two <img></a>", reversed), "<a>" + words + " <img></a>");
    EXPECT_EQ(translated("<a><b><i></i><img></b> one two</a>", reversed),
              "<a><b><i></i><img></b> " + words + "</a>");
  }
  EXPECT_EQ(translated("<b>one <img> two</b> three", true), "THREE <b><img> TWO ONE</b>");
}

TEST(Markup, BlanksKeepTheirPositions) {
  EXPECT_EQ(translated("one <img> two"), "ONE <img> TWO");
  EXPECT_EQ(translated("one <img>two"), "ONE <img>TWO");
  EXPECT_EQ(translated("one<img> two"), "ONE<img> TWO");
  EXPECT_EQ(translated("one <img><img> <img> two"), "ONE <img><img> <img> TWO");
  EXPECT_EQ(translated("<i class=icon></i> one"), "<i class=icon></i> ONE");
  EXPECT_EQ(translated("one <img>"), "ONE <img>");
  EXPECT_EQ(translated("\uFEFFone two"), "\uFEFFONE TWO");
  EXPECT_EQ(translated("&nbsp;one"), "\u00A0ONE");
}

// Elements with their ancestors. Each element has a unique attribute: "<b 1>" in "<i 0>".
std::vector<std::pair<std::string, std::string>> nested(const std::string& html) {
  std::vector<std::string> open{""};
  std::vector<std::pair<std::string, std::string>> found;
  for (const MarkupToken& token : cut_markup(html)) {
    if (token.kind == MarkupToken::Kind::closing) open.pop_back();
    if (token.kind != MarkupToken::Kind::opening && token.kind != MarkupToken::Kind::lone) continue;
    found.emplace_back(token.bytes, open.back());
    if (token.kind == MarkupToken::Kind::opening) open.emplace_back(token.bytes);
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

TEST(Markup, ElementsKeepTheirAncestors) {
  const std::vector<std::string> texts = {"one", " ", "two ", ". ", "!", "3", "/", "Four"};
  Random random(11);
  for (int round = 0; round < 3000; ++round) {
    std::string html;
    std::vector<std::string> open;
    for (uint64_t n = random.below(40); n > 0; --n) {
      const uint64_t what = random.below(10);
      const std::string number = std::to_string(n);
      if (what < 3 && !open.empty()) {
        html += "</" + open.back() + ">";
        open.pop_back();
      } else if (what < 5) {
        open.emplace_back(random.below(2) ? "a" : "b");
        html += "<" + open.back() + " " + number + ">";
      } else {
        html += what == 5 ? "<img " + number + ">" : texts[random.below(texts.size())];
      }
    }
    for (; !open.empty(); open.pop_back()) html += "</" + open.back() + ">";
    ASSERT_EQ(nested(translated(html, round % 2 == 1)), nested(html)) << html;
  }
}

TEST(Markup, CommentsOfAllKindsAreCopied) {
  EXPECT_EQ(translated("one </3 <b>two</b> three"), "ONE </3 <b>TWO</b> THREE");
  for (const char* kept : {"</3 a>", "</ a>", "</>", "<!a>", "<?a b>", "<!doctype a>", "<!>", "<?>",
                           "<![CDATA[a]]>", "<![CDATA[a > b]]>", "<!-- a -- b -->", "<!--a--!>"})
    EXPECT_EQ(translated(std::string("one ") + kept + " two"), std::string("ONE ") + kept + " TWO");
  EXPECT_EQ(translated("<![CDATA[a > one <b> ]]>"), "<![CDATA[a > ONE <b> ]]&gt;");
  EXPECT_EQ(translated("one </"), "ONE &lt;/");
}

TEST(Markup, TagsEndWhereBrowsersEndThem) {
  for (const char* tag : {"<p title=\f\">a\">", "<p title\f= \f'>a'>", "<p a=b'c\"d>", "<p =\">",
                          "<p a\"=c>", "<p/a=\">b\"/>", "<p a=b=\"c>", "<p\r\nb>", "<P\fa=\">\">"})
    EXPECT_EQ(translated(std::string("one ") + tag + "two"), std::string("ONE ") + tag + "TWO");
  EXPECT_EQ(translated("one <b two"), "ONE <b two") << "a tag that the end of the text cuts";
  EXPECT_EQ(translated("one <b/>two three</b> four", true), "FOUR <b/>THREE TWO</b> ONE");
}

TEST(Markup, RawTextIsCopied) {
  for (const char* kept : {"<script>a</scripts>b</script>", "<script/>a</script>",
                           "<style>a<b</style>", "<script><!--<script>a</script>b--></script>",
                           "<xmp><b>a</xmp>", "<noembed>a</noembed>", "<script><!-->a</script>",
                           "<pre><script></pre>a</script></pre>", "<textarea>a</textarea\f>",
                           "<noscript><p>a</p></noscript>", "<svg><style>a<b></b></style></svg>"})
    EXPECT_EQ(translated(std::string("one ") + kept + " two"), std::string("ONE ") + kept + " TWO");
  EXPECT_EQ(translated("<title>one <b>&amp; two</title> three"),
            "<title>ONE &lt;B&gt;&amp; TWO</title> THREE");
  const std::string rest = "<svg><style><b title='</style>'>a</svg> two";
  EXPECT_EQ(translated("one " + rest), "ONE " + rest) << "readings of SVG and HTML differ";
}

// Note [Certain context]
TEST(Markup, TagsInUncertainContextStayAtTheirPlace) {
  EXPECT_EQ(translated("<select><option>one <b>two</b></select> a <b>b c</b>", true),
            "<select><option>ONE <b>TWO</b></select> <b>C B</b> A");
  EXPECT_EQ(translated("<select><option>one</option><option>two</select> a <b>b c</b>", true),
            "<select><option>ONE</option><option>TWO</select> <b>C B</b> A");
  for (const char* svg : {"<svg><path d='M0'/><g>x</g></svg>", "<svg><path></svg>", "<svg/>"})
    EXPECT_EQ(translated(std::string(svg) + "a <b>b c</b>", true),
              svg + std::string("<b>C B</b> A"));
  for (const char* svg :
       {"<svg></g></svg>", "<svg><desc><p></svg>", "<svg><desc><i/></desc></svg>"})
    EXPECT_EQ(translated(std::string(svg) + "a <b>b c</b>", true),
              svg + std::string("A <b>C B</b>"));
}

TEST(Markup, TextNeverBecomesMarkupOrNothing) {
  EXPECT_EQ(translated("<p><</p>"), "<p>&lt;</p>");
  EXPECT_EQ(translated("<hr>1 < 2 &lt;b> &amp;lt;"), "<hr>1 &lt; 2 &lt;B&gt; &amp;LT;");
  const auto document = html_document("one <b>two</b>", "en");
  EXPECT_EQ(document->render(std::vector<Translation>(1), 0), "one <b>two</b>");
  Translation blank = shouted("x", false);
  blank.n_best[0].text = " \n";
  EXPECT_EQ(document->render({&blank, 1}, 0), "one <b>two</b>");
}

// For any input, every tag is in the output, at least as often as in the input: elements may be
// split.
TEST(Markup, RandomMarkupLosesNoTags) {
  testing::HtmlDocuments documents(7);
  for (int round = 0; round < 3000; ++round) {
    const std::string html = documents.hostile();
    const auto tags = [](const std::string& text) {
      std::vector<std::string> found;
      for (const MarkupToken& token : cut_markup(text))
        if (token.kind != MarkupToken::Kind::text && token.bytes.starts_with('<'))
          found.emplace_back(token.bytes);
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

// Hostile input for every parser of requests and files. The time of a parser must be linear in the
// size, because one thread reads the requests of all clients.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/check.h"
#include "base/safetensors.h"
#include "base/settings.h"
#include "document/document.h"
#include "document/html_entities.h"
#include "document/markup.h"
#include "http/http_error.h"
#include "serve/request_parameters.h"
#include "support/growth.h"
#include "text/language_detector.h"
#include "text/vocabulary.h"
#include "text/word_alignment.h"

namespace fovea {
namespace {

using namespace std::string_view_literals;
using testing::expect_linear;
using testing::Pattern;

std::vector<Translation> unchanged(const TextDocument& document) {
  std::vector<Translation> found;
  for (const std::string& sentence : document.sentences())
    found.push_back({.text = sentence,
                     .n_best = {{.text = sentence, .ids = {}, .pieces = {}, .log_probs = {}}},
                     .source_ids = {},
                     .source_pieces = {}});
  return found;
}

void read_markup(const std::string& html) {
  text_of_markup(html);
  const auto document = html_document(html, "en");
  document->render(unchanged(*document), 0);
}

TEST(Cost, OfCommentsIsLinear) {
  for (const Pattern& pattern : std::initializer_list<Pattern>{{"", "<!-->"},
                                                               {"", "<!--->"},
                                                               {"", "<!--x-->"},
                                                               {"", "<!--x--!>"},
                                                               {"", "<!----!>"},
                                                               {"", "<!--"},
                                                               {"", "<!"},
                                                               {"<!--", "-"},
                                                               {"<!--", "--!"},
                                                               {"<!--", "--"},
                                                               {"<!--", "<!-"},
                                                               {"", "<!-- -- -->"},
                                                               {"", "<!--", "-->"},
                                                               {"", "<!-- a --!> b "},
                                                               {"", "</3"},
                                                               {"", "</3>"},
                                                               {"", "</"},
                                                               {"", "</>"},
                                                               {"", "<!x>"},
                                                               {"", "<!x"},
                                                               {"", "<?x>"},
                                                               {"", "<?x"},
                                                               {"", "<?"},
                                                               {"", "<!DOCTYPE html>"},
                                                               {"", "<!DOCTYPE \""},
                                                               {"", "<![CDATA["},
                                                               {"", "<![CDATA[>"},
                                                               {"", "<![CDATA[x]]>"},
                                                               {"", "<![CDATA[ > a "},
                                                               {"<![CDATA[", "]]"},
                                                               {"<svg>", "<![CDATA[x]]>"},
                                                               {"<svg>", "<![CDATA[ > ]"},
                                                               {"", "]]>"},
                                                               {"", "-->"}})
    expect_linear(read_markup, pattern);
}

TEST(Cost, OfTagsIsLinear) {
  for (const Pattern& pattern :
       std::initializer_list<Pattern>{{"", "<"},
                                      {"", "<a"},
                                      {"", "<a "},
                                      {"", "<a>"},
                                      {"", "</a>"},
                                      {"", "<b>", "</b>"},
                                      {"", ">"},
                                      {"", "<b><i>", "</b></i>"},
                                      {"", "<b>x<i>y</b>z</i>"},
                                      {"", "<a b=\""},
                                      {"", "<a b='>"},
                                      {"<a b=\"", "x"},
                                      {"<a ", "b=c "},
                                      {"<a ", "b=\"c\""},
                                      {"<a ", "="},
                                      {"<a ", "/"},
                                      {"<a b", " "},
                                      {"<a b=", "\f"},
                                      {"", "<p translate=no"},
                                      {"", "<p translate=no>"},
                                      {"<p ", "translate "},
                                      {"<code>", "<code>"},
                                      {"", "<code>", "</code>"},
                                      {"<pre>", "<i title='</pre>'>"},
                                      {"", "<p>a b</p>"},
                                      {"", "<div>", "x</div>"},
                                      {"", "<b/>"},
                                      {"", "<table>"},
                                      {"", "<td>a"},
                                      {"", "a<b>"},
                                      {"", "a</b> "},
                                      {"<", "a"},
                                      {"</", "a"},
                                      {"", "<b>a <u>b <i>c</b>d</u>e</i>"}})
    expect_linear(read_markup, pattern);
}

TEST(Cost, OfRawTextIsLinear) {
  for (const Pattern& pattern :
       std::initializer_list<Pattern>{{"", "<script>"},
                                      {"", "<script></script>"},
                                      {"<script>", "<!--"},
                                      {"<script>", "</script"},
                                      {"<script>", "<!--<script>"},
                                      {"<script><!--", "<script></script>"},
                                      {"<script>", "</scripty>"},
                                      {"", "<style>"},
                                      {"", "<style>a</style>"},
                                      {"<style>", "</"},
                                      {"", "<textarea>"},
                                      {"", "<title>"},
                                      {"", "<title>a b</title>"},
                                      {"<title>", "a < b. "},
                                      {"", "<xmp>", "</xmp>"},
                                      {"", "<plaintext>"},
                                      {"", "<noscript>"},
                                      {"", "<noscript>", "</noscript>"},
                                      {"", "<noscript><p>a</p></noscript>"},
                                      {"", "<noscript><b></noscript>"},
                                      {"", "<svg>"},
                                      {"", "<svg><style>a</style></svg>"},
                                      {"", "<svg><style><b></style></svg>"},
                                      {"", "<svg/>"},
                                      {"<svg>", "<style>"},
                                      {"<svg>", "<g>", "</g>"},
                                      {"<svg>", "<path>", "</svg>"},
                                      {"<svg>", "<path/>"},
                                      {"", "<svg><path></svg>"},
                                      {"<svg></b>", "<style>a</style>"},
                                      {"", "<math><mi>"},
                                      {"", "<template>", "</template>"},
                                      {"", "<select><option>a</select>"},
                                      {"", "<select>"},
                                      {"<frameset>", "<noframes>a</noframes>"},
                                      {"<svg>", "<svg>", "</math>"}})
    expect_linear(read_markup, pattern);
}

// Many elements in one run, with and without words, and words in many elements.
TEST(Cost, OfWritingMarkupIsLinear) {
  for (const Pattern& pattern : std::initializer_list<Pattern>{{"dog ", "<b>!</b> "},
                                                               {"dog ", "<b>!</b>"},
                                                               {"", "<b>a</b>"},
                                                               {"", "<b>a</b> "},
                                                               {"dog ", "<b></b>"},
                                                               {"dog ", "<img>"},
                                                               {"", "a<img> "},
                                                               {"", "<b><i>a</i>/</b>"},
                                                               {"dog ", "&nope;"},
                                                               {"", "<a>x</a>"},
                                                               {"", "<a>x</a><b><a>y</a></b>"},
                                                               {"dog ", "<input>"},
                                                               {"", "<sup><a>1</a></sup>"},
                                                               {"", "<sup><a>"},
                                                               {"", "<b>a ", "</b>"},
                                                               {"", "<b>", "a </b>"},
                                                               {"a <b>", "b "},
                                                               {"", "<b>a<i>b</i></b>. "},
                                                               {"", "<label><input>a</label>"},
                                                               {"", "a <wbr>"}}) {
    expect_linear(read_markup, pattern);
    const std::string html = pattern.of_size(48'000);
    const auto document = html_document(html, "en");
    EXPECT_LT(document->render(unchanged(*document), 0).size(), 2 * html.size()) << pattern.part;
  }
}

TEST(Cost, OfReferencesIsLinear) {
  for (const Pattern& pattern :
       std::initializer_list<Pattern>{{"", "&"},
                                      {"", "&amp;"},
                                      {"", "&amp"},
                                      {"", "&a"},
                                      {"", "&#"},
                                      {"", "&#x"},
                                      {"", "&#60;"},
                                      {"", "&#60"},
                                      {"&#", "0"},
                                      {"&#x", "F"},
                                      {"&", "a"},
                                      {"", "&lt;b&gt;"},
                                      {"", "&rarr;"},
                                      {"", "&nope; "},
                                      {"", "&CounterClockwiseContourIntegral"},
                                      {"", "&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
                                      {"", "1&deg;C"},
                                      {"", "&eacute"},
                                      {"", "&amp;amp;"},
                                      {"", ";"}}) {
    expect_linear(read_markup, pattern);
    expect_linear([](const std::string& html) { without_entities(html); }, pattern);
    expect_linear([](const std::string& text) { with_entities(text); }, pattern);
  }
}

TEST(Cost, OfTextIsLinear) {
  for (const Pattern& pattern : std::initializer_list<Pattern>{{"", "A. "},
                                                               {"", "Dr. "},
                                                               {"", "3. "},
                                                               {"", "A.\u2003"},
                                                               {"", "! "},
                                                               {"", "a"},
                                                               {"", "."},
                                                               {"", " "},
                                                               {"", "\n"},
                                                               {"", "\r\n"},
                                                               {"", "(\""},
                                                               {"a", "\u0301"},
                                                               {"", "e\u0301\u0323"},
                                                               {"", "1"},
                                                               {"", "1."},
                                                               {"", "1,000."},
                                                               {"", "我"},
                                                               {"", "。"},
                                                               {"", "我。"},
                                                               {"", "「？！」"},
                                                               {"", "👩\u200D👧"},
                                                               {"", "\u200D"},
                                                               {"", "…"},
                                                               {"", "\t"},
                                                               {"", "\u00A0"},
                                                               {"", "\uFEFF"},
                                                               {"", ", "},
                                                               {"", "a,"},
                                                               {"", "z.B. "},
                                                               {"", "A.A.A. "},
                                                               {"", "a.b/"},
                                                               {"", "\"'"},
                                                               {"", "ß"},
                                                               {"", "\0"sv},
                                                               {"", "א "},
                                                               {"", "ก"},
                                                               {"", "𝔸"},
                                                               {"", "?)\" "},
                                                               {"", "e.g. a"},
                                                               {"", "- "}}) {
    for (const char* language : {"en", "de", "zh"})
      expect_linear(
          [&](const std::string& text) {
            const auto document = plain_document(text, language);
            document->render(unchanged(*document), 0);
          },
          pattern);
    expect_linear([](const std::string& text) { detect_language(text); }, pattern);
  }
}

// Reads the parameters of a request, which may refuse them.
void read_request(const HttpRequest& request) {
  try {
    const RequestParameters parameters(request);
    parameters.texts("q");
    parameters.list("q");
    parameters.flag("q");
  } catch (const HttpError&) {
  }
}

TEST(Cost, OfFormsIsLinear) {
  for (const Pattern& pattern : std::initializer_list<Pattern>{{"q=", "%"},
                                                               {"q=", "%4"},
                                                               {"q=", "%41"},
                                                               {"q=", "+"},
                                                               {"", "&"},
                                                               {"", "="},
                                                               {"", "q=a&"},
                                                               {"", "%71=%"},
                                                               {"q=", "\r\n"},
                                                               {"q=", "\r"},
                                                               {"q=", "["},
                                                               {"q=", "[%22"},
                                                               {"", "a"},
                                                               {"", "&="}})
    expect_linear(
        [](const std::string& text) {
          read_request({"POST", "/translate", text, {{"content-type", ""}}, text, ""});
        },
        pattern);
  constexpr std::string_view part = "--B\r\nContent-Disposition: form-data; name=q";
  constexpr std::string_view value = "--B\r\nContent-Disposition: form-data; name=q\r\n\r\n";
  constexpr std::string_view quoted = "--B\r\nContent-Disposition: form-data; name=q; x=\"";
  for (const Pattern& pattern : std::initializer_list<Pattern>{{value, "\r\n--"},
                                                               {value, "\r\n--A"},
                                                               {value, "\r\n"},
                                                               {value, "-"},
                                                               {value, "\r"},
                                                               {value, "\r\n--B"},
                                                               {"", "--B\r\n\r\n"},
                                                               {"--B\r\n", "X: y\r\n"},
                                                               {"--B\r\n", "\r\n"},
                                                               {part, "; a=b"},
                                                               {part, ";"},
                                                               {part, ";\""},
                                                               {quoted, "\\"},
                                                               {quoted, "\\\""},
                                                               {quoted, "\""},
                                                               {part, "\r\nContent-Disposition: x"},
                                                               {"", "\r\n--B\r\nA: b\r\n\r\n"},
                                                               {"", "--"},
                                                               {"", "--B--"}})
    for (const char* tail : {"", "\r\n\r\nx\r\n--B--\r\n"})
      expect_linear(
          [&](const std::string& text) {
            read_request({"POST",
                          "/translate",
                          "",
                          {{"content-type", "multipart/form-data; boundary=B"}},
                          text + tail,
                          ""});
          },
          pattern);
}

TEST(Cost, OfJsonIsLinear) {
  for (const Pattern& pattern : std::initializer_list<Pattern>{{"", "["},
                                                               {"", "[", "]"},
                                                               {"", "{\"a\":"},
                                                               {"", "{\"a\":", "}"},
                                                               {"{\"q\":\"", "\\u0041"},
                                                               {"{\"q\":\"", "\\\\"},
                                                               {"{\"q\":\"", "\\ud83d"},
                                                               {"{\"q\":\"", "\\ud83d\\ude00"},
                                                               {"{\"q\":", "1"},
                                                               {"{\"q\":0.", "1"},
                                                               {"{\"q\":1e", "1"},
                                                               {"", " "},
                                                               {"{\"q\":[", "\"a\","},
                                                               {"{", "\"q\":\"a\","},
                                                               {"{\"q\":\"", "a"},
                                                               {"{\"q\":\"", "\xFF"},
                                                               {"{\"q\":\"", "\u00E4"},
                                                               {"{\"q\":[", "0,"},
                                                               {"{\"q\":[", "[],"},
                                                               {"{\"q\":[", "{},"},
                                                               {"", "\""},
                                                               {"", ","},
                                                               {"{\"q\":\"", "\\"}})
    for (const char* tail : {"", "\"}", "0]}", "\"q\":1}"})
      expect_linear(
          [&](const std::string& text) {
            read_request({"POST",
                          "/translate",
                          "",
                          {{"content-type", "application/json"}},
                          text + tail,
                          ""});
          },
          pattern);
}

TEST(Cost, OfHeadersIsLinear) {
  for (const Pattern& pattern : std::initializer_list<Pattern>{{"", ","},
                                                               {"", "a,"},
                                                               {"", ", "},
                                                               {"", " "},
                                                               {"", "1.2.3.4, "},
                                                               {"http://", "/"},
                                                               {"", "?"},
                                                               {"http://", "a"},
                                                               {"", "/"}})
    expect_linear(
        [](const std::string& text) {
          HttpRequest request{
              "GET", "", "", {{"x-forwarded-for", text}, {"host", "h"}, {"expect", text}}};
          request.set_target(text);
          request.client(1);
          find_protocol_error(request, 11);
        },
        pattern);
}

// Contents of files.
TEST(Cost, OfFilesIsLinear) {
  const auto allowing_errors = [](auto read) {
    return [read](const std::string& text) {
      try {
        read(text);
      } catch (const Error&) {
      }
    };
  };
  for (const Pattern& pattern :
       std::initializer_list<Pattern>{{"", "a\t1\n"},
                                      {"", "a\n"},
                                      {"", "\t"},
                                      {"", "\n"},
                                      {"", "a"},
                                      {"", "0-0 "},
                                      {"", "0-0:"},
                                      {"", "0-"},
                                      {"", "1-2:0.5 "},
                                      {"", " "},
                                      {"", "9"},
                                      {"", "-"},
                                      {"fovea-vocabulary 1 words\n", "a\n"}}) {
    expect_linear(allowing_errors([](auto& text) { Vocabulary::parse_text(text, "v"); }), pattern);
    expect_linear(allowing_errors([](auto& text) { parse_pharaoh(text, "line 1"); }), pattern);
    expect_linear(allowing_errors([](auto& text) { parse_talp(text, "line 1"); }), pattern);
  }
  for (const Pattern& pattern :
       std::initializer_list<Pattern>{{"", "["},
                                      {"", "{\"a\":"},
                                      {"{\"a\":\"", "\\u0041"},
                                      {"{", "\"a\":{},"},
                                      {"{", "\"a\":1,"},
                                      {"", " "},
                                      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[", "1,"},
                                      {"{\"__metadata__\":{", "\"a\":\"b\","}})
    expect_linear(allowing_errors([](const std::string& header) {
                    std::string file;
                    for (size_t i = 0; i < 8; ++i)
                      file += static_cast<char>(header.size() >> (8 * i));
                    file += header;
                    SafetensorsFile::parse(as_byte_span(file), "file");
                  }),
                  pattern);
  for (const Pattern& pattern : std::initializer_list<Pattern>{{"", "a: b\n"},
                                                               {"", "- a\n"},
                                                               {"", "#\n"},
                                                               {"a: \"", "\\n"},
                                                               {"a: ", "b "},
                                                               {"", "\n"},
                                                               {"a: [", "b, "}})
    expect_linear(allowing_errors([](const std::string& text) {
                    std::string a;
                    Settings settings;
                    settings.field("a", a, "a");
                    settings.read_text(text, "file");
                  }),
                  pattern);
}

int64_t peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Every word is in thousands of elements. The memory per word must not grow with their number.
TEST(Cost, OfNestedElementsInMemoryIsSmall) {
  std::string html;
  for (const char* part : {"<b>", "a ", "</b>"})
    for (int i = 0; i < 5000; ++i) html += part;
  const int64_t before = peak_kib();
  const auto document = html_document(html, "en");
  const std::string result = document->render(unchanged(*document), 0);
  EXPECT_LT(peak_kib() - before, 64 << 10);
  size_t tags = 0;
  for (size_t at = result.find("<b>"); at != std::string::npos; at = result.find("<b>", at + 1))
    ++tags;
  EXPECT_EQ(tags, 5000U);
}

TEST(Cost, OfJsonIsBounded) {
  EXPECT_FALSE(parse_json(Pattern{"", "["}.of_size(100'000)));
  EXPECT_FALSE(parse_json(Pattern{"", "{\"a\":"}.of_size(500'000)));
  EXPECT_FALSE(parse_json(Pattern{"[", "0,"}.of_size(400'000) + "0]"));
  EXPECT_TRUE(parse_json(Pattern{"[", "0,"}.of_size(100'000) + "0]"));
}

}  // namespace
}  // namespace fovea

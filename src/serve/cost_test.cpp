// Texts that are costly to read where each part is looked at once too often: reading them must
// take time and memory in proportion to their size, since others wait meanwhile.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "serve/parameters.h"
#include "serve/passage.h"
#include "serve/sentences.h"
#include "text/pieces.h"
#include "thread_seconds.h"

namespace fovea {
namespace {

constexpr size_t kSize = 96'000;

std::string repeated(std::string_view part, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += part;
  return all;
}

double seconds_of(const std::function<void()>& action) {
  const double begin = thread_seconds();
  action();
  return thread_seconds() - begin;
}

int64_t peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Cost, OfSentencesIsLinear) {
  for (const char* part : {"A. ", "Dr. ", "3. ", "A.\u2003", "! ", "a", ".", " ", "\n", "(\""}) {
    const std::string text = repeated(part, kSize / std::string_view(part).size());
    for (const char* language : {"en", "de"})
      EXPECT_LT(seconds_of([&] { split_sentences(text, language); }), time_limit(2)) << part;
  }
}

TEST(Cost, OfMarkupIsLinear) {
  const std::string crossed = repeated("<b><i><u>", 1500) + "a" + repeated("</b></i></u>", 1500);
  const std::string turns = repeated(repeated("<b>x<i>", 5) + repeated("</b></i>", 5), 640);
  for (const std::string& html :
       {repeated("<a", kSize / 2), repeated("<a b=\"", kSize / 6), repeated("&", kSize),
        repeated("<p translate=no", kSize / 15) + ">", repeated("<p translate=no>", kSize / 16),
        repeated("<!--", kSize / 4), repeated("</b>", kSize / 4), crossed, turns})
    EXPECT_LT(seconds_of([&] { html_passage(html, "en"); }), time_limit(2)) << html.substr(0, 30);
}

std::vector<Translation> unchanged(const Passage& passage) {
  std::vector<Translation> found;
  for (const std::string& sentence : passage.sentences())
    found.push_back({.text = sentence,
                     .n_best = {{.text = sentence, .ids = {}, .pieces = {}, .log_probs = {}}},
                     .source_ids = {},
                     .source_pieces = {}});
  return found;
}

// Every word lies in thousands of elements: they are not remembered for each word.
TEST(Cost, OfNestedElementsIsLinear) {
  const std::string html = repeated("<b>", 5000) + repeated("a ", 5000) + repeated("</b>", 5000);
  const int64_t before = peak_kib();
  const auto passage = html_passage(html, "en");
  const std::vector<Translation> found = unchanged(*passage);
  std::string result;
  EXPECT_LT(seconds_of([&] { result = passage->render(found, 0); }), time_limit(2));
  EXPECT_LT(peak_kib() - before, 64 << 10);
  size_t tags = 0;
  for (size_t at = result.find("<b>"); at != std::string::npos; at = result.find("<b>", at + 1))
    ++tags;
  EXPECT_EQ(tags, 5000U);
}

// Many elements in one run, with and without words, and words in many elements.
TEST(Cost, OfWritingMarkupIsLinear) {
  for (const std::string part : {"<b>!</b> ", "<b>!</b>", "<b>a</b>", "<b>a</b> ", "<b></b>",
                                 "<img>", "a<img> ", "<b><i>a</i>/</b>", "&nope;"}) {
    const std::string html = repeated(part, 5 * kSize / part.size()) + " dog";
    std::string result;
    const double seconds = seconds_of([&] {
      const auto passage = html_passage(html, "en");
      result = passage->render(unchanged(*passage), 0);
    });
    EXPECT_LT(seconds, time_limit(2)) << part;
    EXPECT_EQ(result.find("<b><b>"), std::string::npos) << part;
    EXPECT_LT(result.size(), 2 * html.size()) << part;
  }
}

TEST(Cost, OfJsonIsBounded) {
  EXPECT_FALSE(parse_json(repeated("[", 100'000)));
  EXPECT_FALSE(parse_json(repeated("{\"a\":", 100'000)));
  EXPECT_FALSE(parse_json("[" + repeated("0,", 200'000) + "0]"));
  EXPECT_TRUE(parse_json("[" + repeated("0,", 50'000) + "0]"));
}

}  // namespace
}  // namespace fovea

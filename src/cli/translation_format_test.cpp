#include "cli/translation_format.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/check.h"
#include "temporary.h"

namespace fovea {
namespace {

Translation sample() {
  Translation t;
  t.text = "ein Hund";
  t.source_ids = {7, 2};
  t.source_pieces = {"dog", "</s>"};
  t.n_best = {{.text = "ein Hund",
               .score = -1,
               .log_prob = -3,
               .ids = {5, 6, 2},
               .pieces = {"ein", "Hund", "</s>"},
               .log_probs = {-1, -1.5, -0.5},
               .alignment = {{0, 0}, {0, 1}}},
              {.text = "Hund",
               .score = -2,
               .log_prob = -4,
               .ids = {6, 2},
               .pieces = {"Hund", "</s>"},
               .log_probs = {-3, -1},
               .alignment = {{0, 0}}}};
  return t;
}

TEST(TranslationFormat, TextIsOneLine) {
  const InputLine line{3, "dog"};
  EXPECT_EQ(format_translation(TranslationFormat::text, line, sample(), {}), "ein Hund\n");
  EXPECT_EQ(format_translation(TranslationFormat::text, line, sample(), {.alignment = true}),
            "ein Hund ||| 0-0 0-1\n");
  EXPECT_EQ(format_translation(TranslationFormat::text, line, {}, {}), "\n");
  EXPECT_EQ(format_translation(TranslationFormat::text, line, {}, {.alignment = true}), " ||| \n");
}

TEST(TranslationFormat, JsonPassesUnknownKeysThrough) {
  const InputLine line = parse_json_line(R"({"id": "a", "source": "dog", "x": [1]})", 3, "f:4");
  const std::string text = format_translation(TranslationFormat::jsonl, line, sample(),
                                              {.alignment = true, .n_best = true});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  const auto object = nlohmann::json::parse(text);
  EXPECT_EQ(object["id"], "a");
  EXPECT_EQ(object["x"][0], 1);
  EXPECT_EQ(object["translation"], "ein Hund");
  EXPECT_EQ(object["alignment"].dump(), "[[0,0],[0,1]]");
  EXPECT_EQ(object["token_scores"].dump(), "[-1.0,-1.5,-0.5]");
  EXPECT_EQ(object["n_best"][1]["translation"], "Hund");
  const auto empty = nlohmann::json::parse(
      format_translation(TranslationFormat::jsonl, {4, "\xff"}, Translation{}, {}));
  EXPECT_EQ(empty["translation"], "");
  EXPECT_EQ(empty["source"], "\uFFFD");
}

TEST(TranslationFormat, JsonInputIsChecked) {
  for (const char* bad : {"dog", "[1]", "{\"source\": 3}", "{\"x\": \"y\"}", "{\"source\": \"a\""})
    try {
      parse_json_line(bad, 0, "in.jsonl:7");
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_TRUE(std::string(error.what()).starts_with("in.jsonl:7: "));
    }
  EXPECT_EQ(parse_json_line(R"({"text": "dog"})", 0, "f").text, "dog");
}

TEST(TranslationFormat, ALineOfJsonMayHaveConstraints) {
  const InputLine line =
      parse_json_line(R"({"source": "dog", "prefix": "Ein", "terms": ["Hund", "Tier"]})", 0, "f:1");
  EXPECT_EQ(line.prefix, "Ein");
  EXPECT_EQ(line.terms, (std::vector<std::string>{"Hund", "Tier"}));
  for (const char* bad : {R"({"source": "dog", "prefix": 1})", R"({"source": "dog", "terms": "a"})",
                          R"({"source": "dog", "terms": [1]})"})
    EXPECT_TRUE(
        message_of(ExitCode::data, [&] { parse_json_line(bad, 0, "f:1"); }).starts_with("f:1: \""));
}

TEST(TranslationFormat, MarianAndFairseq) {
  EXPECT_EQ(format_translation(TranslationFormat::marian, {3, "dog"}, sample(), {}),
            "3 ||| ein Hund ||| F0= -3.000000 ||| -1.000000\n"
            "3 ||| Hund ||| F0= -4.000000 ||| -2.000000\n");
  Translation one = sample();
  one.n_best.resize(1);
  EXPECT_EQ(format_translation(TranslationFormat::fairseq, {3, "dog"}, one, {.alignment = true}),
            "S-3\tdog\nH-3\t-1.442695\tein Hund\nD-3\t-1.442695\tein Hund\n"
            "P-3\t-1.4427 -2.1640 -0.7213\nA-3\t0-0 0-1\n");
}

}  // namespace
}  // namespace fovea

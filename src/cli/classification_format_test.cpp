#include "cli/classification_format.h"

#include <gtest/gtest.h>

#include "temporary.h"

namespace fovea {
namespace {

const QuestionRule kLabels{LabelKind::label}, kTabs{LabelKind::answer},
    kOneQuestion{LabelKind::answer, "Where?"};

ClassificationResult result() {
  return {.label = "B",
          .probability = 0.75,
          .labels = {{"B", 0.75}, {"A", 0.25}},
          .words = {"how", "far", "is", "aspen", "</s>"},
          .weights = {0.04f, 0.3f, 0.0f, 0.61f, 0.05f}};
}

TEST(ClassificationFormat, LinesOfText) {
  EXPECT_EQ(parse_text_item("a\tb", kLabels, "f:1").input.text, "a\tb");
  const ClassificationItem one = parse_text_item("a\tb", kOneQuestion, "f:1");
  EXPECT_EQ(one.input.text, "a\tb");
  EXPECT_EQ(one.input.question, "Where?");
  const ClassificationItem own = parse_text_item("Bob is out.\tWho?", kTabs, "f:2");
  EXPECT_EQ(own.input.text, "Bob is out.");
  EXPECT_EQ(own.input.question, "Who?");
  EXPECT_EQ(own.where, "f:2");
  EXPECT_EQ(parse_text_item(" \t ", kTabs, "f:3").input.question, "") << "a blank line";
}

TEST(ClassificationFormat, LinesWithoutAQuestion) {
  EXPECT_EQ(message_of(ExitCode::data, [] { parse_text_item("Bob.", kTabs, "f:4"); }),
            "f:4: expected 2 columns, document and question, separated by a tab, found 1; to ask "
            "the same question of all texts, use --question");
  EXPECT_NE(
      message_of(ExitCode::data, [] { parse_text_item("a\tb\tc", kTabs, "f:5"); }).find("found 3;"),
      std::string::npos);
}

TEST(ClassificationFormat, LinesOfJson) {
  const auto item =
      parse_json_item(R"({"text": "Bob.", "question": "Who?", "x": 1})", kTabs, "f:1");
  EXPECT_EQ(item.input.text, "Bob.");
  EXPECT_EQ(item.input.question, "Who?");
  EXPECT_EQ(item.fields["x"], 1);
  EXPECT_EQ(parse_json_item(R"({"text": "Bob.", "question": "Who?"})", kOneQuestion, "f:1")
                .input.question,
            "Where?");
  EXPECT_EQ(parse_json_item(R"({"text": "Bob."})", kLabels, "f:1").input.question, "");
  for (const char* bad : {R"({"text": "Bob."})", R"({"text": "Bob.", "question": 3})"})
    EXPECT_EQ(message_of(ExitCode::data, [&] { parse_json_item(bad, kTabs, "f:6"); }),
              "f:6: the object has no string \"question\"; add it, or use --question");
  message_of(ExitCode::data, [] { parse_json_item("Bob.", kLabels, "f:7"); });
}

TEST(ClassificationFormat, TextNamesTheWordsWithTheLargestWeights) {
  EXPECT_EQ(classification_text(result(), nullptr), "B\t0.7500\taspen .61, far .30, </s> .05\n");
  ClassificationResult sharp = result();
  sharp.weights = {0.97f, 0.01f, 0.0f, 0.01f, 0.01f};
  EXPECT_EQ(classification_text(sharp, nullptr), "B\t0.7500\thow .97\n");
  ClassificationResult flat = result();
  flat.weights = {0.03f, 0.03f, 0.03f, 0.03f, 0.03f};
  EXPECT_EQ(classification_text(flat, nullptr), "B\t0.7500\thow .03\n") << "at least one word";
}

TEST(ClassificationFormat, TextWithoutAttentionOrWords) {
  ClassificationResult plain = result();
  plain.weights.clear();
  EXPECT_EQ(classification_text(plain, nullptr), "B\t0.7500\n");
  EXPECT_EQ(classification_text({}, nullptr), "\n");
}

TEST(ClassificationFormat, AllWordsAreShaded) {
  const TerminalOptions shades{.shades = TerminalShades::blocks, .width = 80};
  const std::string line = classification_text(result(), &shades);
  EXPECT_TRUE(line.starts_with("B\t0.7500\t")) << line;
  for (const char* word : {"how", "far", "is", "aspen", "</s>"})
    EXPECT_NE(line.find(word), line.npos) << word;
  EXPECT_NE(line, classification_text(result(), nullptr));
}

TEST(ClassificationFormat, JsonHasAllLabelsAndWeights) {
  ClassificationItem item{{"How far\xff?", "Where?"}, "A", "f:1"};
  const std::string line = classification_json(item, result(), LabelKind::label, 7);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto json = nlohmann::ordered_json::parse(line);
  EXPECT_EQ(json["id"], 7);
  EXPECT_EQ(json["text"], "How far\uFFFD?");
  EXPECT_FALSE(json.contains("question"));
  EXPECT_EQ(json["gold"], "A");
  EXPECT_EQ(json["label"], "B");
  EXPECT_EQ(json["probability"], 0.75);
  EXPECT_EQ(json["labels"].dump(), R"({"B":0.75,"A":0.25})");
  EXPECT_EQ(json["words"][3], "aspen");
  EXPECT_EQ(json["weights"].dump(), "[0.04,0.3,0.0,0.61,0.05]");
}

TEST(ClassificationFormat, JsonKeepsTheFieldsOfTheInput) {
  ClassificationItem item{{"Bob.", "Who?"}};
  item.fields = {{"id", "a"}, {"key", 7}};
  const auto json =
      nlohmann::ordered_json::parse(classification_json(item, result(), LabelKind::answer, 3));
  EXPECT_EQ(json["id"], "a");
  EXPECT_EQ(json["key"], 7);
  EXPECT_EQ(json["question"], "Who?");
  EXPECT_FALSE(json.contains("gold"));
}

}  // namespace
}  // namespace fovea

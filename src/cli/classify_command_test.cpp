#include <nlohmann/json.hpp>

#include "decode/model_bundle.h"
#include "support/command_run.h"

namespace fovea {
namespace {

class Classify : public CommandTest {
 protected:
  // Writes a model with random weights that labels texts, or answers questions about them.
  std::string model(const std::string& name, ReaderQuery query) {
    const Vocabulary words = Vocabulary::from_entries(
        Segmentation::tokens, {{"where", 3}, {"is", 2}, {"mary", 2}, {"?", 1}, {".", 1}});
    const Vocabulary labels =
        Vocabulary::from_entries(Segmentation::words, {{"home", 2}, {"out", 1}});
    ModelConfig c;
    ReaderConfig& own = c.network.emplace<ReaderConfig>();
    c.encoder_layers = 1, c.size = 6, c.max_length = 8;
    own.attention.kind = "static";
    own.query = query;
    c.source_words = words.size(), c.target_words = labels.size();
    const std::string directory = folder_ / name;
    save_model(directory, c, make_model(c, 5)->parameters());
    save_vocabularies(directory, words, labels);
    return directory;
  }

  const std::string labels_ = model("labels", ReaderQuery::summary);
  const std::string answers_ = model("answers", ReaderQuery::question);
};

TEST_F(Classify, ALineForEachText) {
  const std::string two = output({"classify", "-m", labels_, "mary is", ".", " "});
  EXPECT_EQ(std::count(two.begin(), two.end(), '\n'), 3) << two;
  EXPECT_TRUE(two.starts_with("home\t0.") || two.starts_with("out\t0.")) << two;
  EXPECT_TRUE(two.ends_with("\n\n")) << "a blank text gives an empty line: " << two;
  EXPECT_EQ(output({"classify", "-m", labels_, "-i", file("in", "mary is\n.\n \n")}), two);
  EXPECT_EQ(output({"classify", "-m", labels_}, "mary is\n.\n \n"), two);
  EXPECT_EQ(output({"classify", "-m", labels_, "-i", folder_ / "in", "-o", folder_ / "out"}), "");
  EXPECT_EQ(content("out"), two);
}

TEST_F(Classify, JsonHasIdsAndFields) {
  const std::string text =
      output({"classify", "-m", labels_, "--input-format", "jsonl", "-f", "jsonl"},
             "{\"text\":\"mary\",\"key\":1}\n{\"text\":\"is\",\"id\":\"x\"}\n");
  const auto first = nlohmann::json::parse(text.substr(0, text.find('\n')));
  const auto second = nlohmann::json::parse(text.substr(text.find('\n') + 1));
  EXPECT_EQ(first["id"], 0);
  EXPECT_EQ(first["key"], 1);
  EXPECT_EQ(second["id"], "x");
  EXPECT_EQ(second["labels"].size(), 2u);
}

TEST_F(Classify, QuestionsComeFromTheOptionOrTheLine) {
  const std::string asked =
      output({"classify", "-m", answers_, "--question", "where is mary ?", "mary is ."});
  EXPECT_EQ(output({"classify", "-m", answers_, "mary is .\twhere is mary ?"}), asked);
  EXPECT_NE(output({"classify", "-m", answers_, "mary is .\tis ?"}), asked);
  expect_error(ExitCode::data, "argument:1: expected 2 columns",
               {"classify", "-m", answers_, "mary is ."});
}

TEST_F(Classify, TheAccuracyOfExamplesWithLabels) {
  const std::string label =
      output({"classify", "-m", labels_, "mary"}).substr(0, 3) == "hom" ? "home" : "out";
  const std::string examples = file("examples", label + " mary\nother mary\n" + label + " mary\n");
  const CommandResult result =
      run({"classify", "-m", labels_, "-i", examples, "--input-format", "label-first"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(has(result.err, "accuracy 66.67 %: 2 of 3 correct")) << result.err;
  EXPECT_FALSE(has(messages({"classify", "-m", labels_, "mary"}), "accuracy"));
}

TEST_F(Classify, LongTextsAreTruncatedWithAWarning) {
  EXPECT_TRUE(has(messages({"classify", "-m", labels_, "is is is is is is is is is is"}),
                  "argument:1: longer than the model accepts; the text was truncated"));
}

TEST_F(Classify, UsageErrors) {
  const auto fails = [&](const std::string& part, Words more) {
    more.insert(more.begin(), {"classify"});
    expect_error(ExitCode::usage, part, more);
  };
  unsetenv("FOVEA_MODEL");
  fails("give one model with -m DIR", {"mary"});
  fails("give texts or -i files, not both", {"-m", labels_, "mary", "-i", "x"});
  fails("--input-format jsonl applies to files",
        {"-m", labels_, "--input-format", "jsonl", "mary"});
  fails("--show writes colours and requires --format text",
        {"-m", labels_, "--show", "-f", "jsonl", "mary"});
  fails("--question: this model labels texts", {"-m", labels_, "--question", "is ?", "mary"});
  fails("--input-format babi: this model labels texts",
        {"-m", labels_, "--input-format", "babi", "-i", file("x", "1 a\n")});
  fails("--input-format label-first has no column for the question",
        {"-m", answers_, "--input-format", "label-first", "-i", folder_ / "x"});
  expect_error(ExitCode::model, "a model of type transformer",
               {"classify", "-m", "transformer", "mary"});
  expect_error(ExitCode::model, "this model labels texts and cannot translate; use 'fovea classify",
               {"translate", "-m", labels_, "mary"});
}

}  // namespace
}  // namespace fovea

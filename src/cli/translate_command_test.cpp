#include <nlohmann/json.hpp>

#include "support/command_run.h"

namespace fovea {
namespace {

class TranslateCommandTest : public CommandTest {
 protected:
  // Options of a quick translation with a small model.
  Words words(const Words& more) const {
    Words all{"translate", "-m", "transformer", "-b", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::vector<nlohmann::json> lines_of_json(const Words& more, const std::string& input = "") {
    std::istringstream text(output(words(more), input));
    std::vector<nlohmann::json> objects;
    for (std::string line; std::getline(text, line);)
      objects.push_back(nlohmann::json::parse(line));
    return objects;
  }
};

TEST_F(TranslateCommandTest, ArgumentsFilesAndPipesGiveTheSameText) {
  const std::string text = output(words({"A dog.", "Two men."}));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  const std::string in = file("in", "A dog.\nTwo men.\n");
  EXPECT_EQ(output(words({"-i", in})), text);
  EXPECT_EQ(output(words({}), "A dog.\nTwo men.\n"), text);
  EXPECT_EQ(output(words({"-i", "-"}), "A dog.\nTwo men."), text);
  EXPECT_EQ(output(words({"-i", file("a", "A dog.\n"), file("b", "Two men.\n")})), text);
  EXPECT_EQ(output(words({"-i", in, "-o", folder_ / "out"})), "");
  EXPECT_EQ(content("out"), text);
}

TEST_F(TranslateCommandTest, LinesStayLines) {
  const std::string text = output(words({}), "A dog.\n\n...\nA dog.\n");
  std::vector<std::string> lines;
  std::istringstream read(text);
  for (std::string line; std::getline(read, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], lines[3]);
  EXPECT_EQ(lines[1], "");
  EXPECT_EQ(lines[2], "...") << "text without letters is not translated";
  EXPECT_EQ(output(words({"--chunk", "1"}), "A dog.\n\n...\nA dog.\n"), text);
}

TEST_F(TranslateCommandTest, ArgumentsAreSplitAndFilesAreNot) {
  const std::string dog = output(words({"A dog."})), men = output(words({"Two men sleep."}));
  const std::string both = dog.substr(0, dog.size() - 1) + " " + men;
  EXPECT_EQ(output(words({"A dog. Two men sleep."})), both);
  const std::string whole = output(words({"--no-split", "A dog. Two men sleep."}));
  EXPECT_NE(whole, both);
  EXPECT_EQ(output(words({}), "A dog. Two men sleep.\n"), whole);
  EXPECT_EQ(output(words({"--split"}), "A dog. Two men sleep.\n"), both);
}

TEST_F(TranslateCommandTest, JsonHasAlternativesAlignmentAndAttention) {
  const auto objects = lines_of_json(
      {"-f", "jsonl", "-b", "3", "-n", "3", "--alignment", "--attention", "A dog sleeps."});
  ASSERT_EQ(objects.size(), 1u);
  const auto& object = objects[0];
  EXPECT_EQ(object["id"], 0);
  EXPECT_EQ(object["source"], "A dog sleeps.");
  ASSERT_EQ(object["n_best"].size(), 3u);
  EXPECT_EQ(object["n_best"][0]["translation"], object["translation"]);
  EXPECT_GE(object["n_best"][0]["score"], object["n_best"][1]["score"]);
  EXPECT_EQ(object["tokens"].size(), object["token_scores"].size());
  EXPECT_FALSE(object["alignment"].empty());
  const auto& map = object["attention"][0];
  EXPECT_EQ(map["data"].size(), map["rows"]);
  EXPECT_EQ(map["data"][0].size(), map["cols"]);
}

TEST_F(TranslateCommandTest, JsonInputKeepsItsFields) {
  const auto objects =
      lines_of_json({"-f", "jsonl", "--input-format", "jsonl"},
                    "{\"source\":\"A dog.\",\"id\":\"x\",\"extra\":[1]}\n{\"text\":\"A cat.\"}\n");
  ASSERT_EQ(objects.size(), 2u);
  EXPECT_EQ(objects[0]["id"], "x");
  EXPECT_EQ(objects[0]["extra"][0], 1);
  EXPECT_EQ(objects[1]["id"], 1);
  expect_error(ExitCode::data, "standard input:1: not a JSON object",
               words({"--input-format", "jsonl"}), "A dog.\n");
}

TEST_F(TranslateCommandTest, MarianNumbersTheLines) {
  const std::string text =
      output(words({"-f", "marian", "-b", "2", "-n", "2"}), "A dog.\nA cat.\n");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_TRUE(text.starts_with("0 ||| ")) << text;
  EXPECT_TRUE(has(text, "\n1 ||| ")) << text;
}

TEST_F(TranslateCommandTest, APrefixBeginsTheTranslation) {
  EXPECT_TRUE(output(words({"--prefix", "Zwei", "A dog."})).starts_with("Zwei "));
}

TEST_F(TranslateCommandTest, SamplesDependOnTheSeed) {
  const auto sample = [&](const char* seed, const char* k) {
    return output(words({"--sample", "--temperature", "2", "--top-k", k, "--seed", seed,
                         "A small dog runs through the snow."}));
  };
  EXPECT_EQ(sample("1", "0"), sample("1", "0"));
  EXPECT_NE(sample("1", "0"), sample("2", "0"));
  EXPECT_EQ(sample("1", "1"), sample("2", "1")) << "one word to choose from";
  expect_error(ExitCode::usage, "--temperature requires --sample; give both",
               words({"--temperature", "2", "A dog."}));
}

TEST_F(TranslateCommandTest, PathsGivenAsTextsAreNoticed) {
  const std::string path = file("in", "A dog.\n");
  EXPECT_TRUE(has(messages(words({path})), "'" + path +
                                               "' is translated as text; to translate the "
                                               "lines of this file, use -i " +
                                               path));
  for (const char* missing : {"nothere.en", "./nothere", "../x", "/nowhere/x"})
    EXPECT_TRUE(has(messages(words({missing})), "there is no such file; use -i for files"))
        << missing;
  for (const char* text : {"Hello.", "3.14", "and/or", "e.g.", "www", "/", "Yes.no what.is"})
    EXPECT_FALSE(has(messages(words({text})), "no such file")) << text;
}

TEST_F(TranslateCommandTest, OptionsThatDoNotFitTogether) {
  const auto fails = [&](const std::string& part, const Words& more) {
    expect_error(ExitCode::usage, part, words(more));
  };
  fails("give texts or -i files to translate, not both", {"-i", "x", "A dog."});
  fails("--n-best: plain text has one line per sentence", {"-b", "2", "-n", "2", "A dog."});
  fails("--attention: matrices need --format jsonl", {"--attention", "A dog."});
  fails("--split: --format marian applies to whole lines", {"--split", "-f", "marian", "A dog."});
  fails("--split: --prefix applies to whole lines", {"--split", "--prefix", "x", "A dog."});
  fails("--split: --alignment applies to whole lines", {"--split", "--alignment", "A dog."});
  fails("--no-split and --split exclude each other", {"--split", "--no-split", "A dog."});
  fails("--max-length-factor: -1 is not between 0 and 1000", {"--max-length-factor", "-1", "x"});
  fails("--top-p: 2 is not between", {"--sample", "--top-p", "2", "x"});
  fails("--from and --to choose a bundled model, but -m", {"--to", "de", "A dog."});
}

TEST_F(TranslateCommandTest, EnsemblesMustFitTogether) {
  EXPECT_EQ(output(words({"-m", "transformer", "A dog."})), output(words({"A dog."})))
      << "the same model twice";
  expect_error(ExitCode::model, "translates in the opposite direction of",
               {"translate", "-m", "en-de", "-m", "de-en", "A dog."});
  expect_error(ExitCode::model, "", words({"-m", "en-de", "A dog."}));
}

TEST_F(TranslateCommandTest, LongLinesAreTruncatedWithAWarning) {
  std::string line;
  for (int i = 0; i < 200; ++i) line += "dog ";
  const std::string log = messages(words({}), "A dog.\n" + line + "\n");
  EXPECT_TRUE(has(log, "standard input:2: ")) << log;
  EXPECT_FALSE(has(messages(words({"--split"}), line + "\n"), "standard input:1: "))
      << "sentences are split at the limit of the model";
}

TEST_F(TranslateCommandTest, ProgressOfAFileHasItsTotal) {
  const std::string in = file("in", "A dog.\nA cat.\nA man.\n");
  const std::string shown =
      messages(words({"--log-format", "tty", "-i", in, "-o", folder_ / "out"}));
  EXPECT_TRUE(has(shown, "translating 3/3 (100 %)")) << shown;
  EXPECT_TRUE(has(shown, "lines/s")) << shown;
  EXPECT_FALSE(has(messages(words({"--log-format", "tty", "A dog."})), "translating"));
  EXPECT_FALSE(has(messages(words({"-i", in})), "translating")) << "a short run in a pipe";
}

TEST_F(TranslateCommandTest, TheLanguageChoosesTheBundledModel) {
  const Words chinese{"translate", "-b", "1", "我爱中国。"};
  const std::string english = output(chinese);
  EXPECT_TRUE(has(english, "love")) << english;
  EXPECT_EQ(output({"translate", "-b", "1", "--from", "zh", "我爱中国。"}), english);
  expect_error(ExitCode::model, "no bundled model translates to 'fr'; there are ",
               {"translate", "--to", "fr", "A dog."});
}

TEST_F(TranslateCommandTest, AFailureKeepsTheOldOutput) {
  file("out", "old\n");
  expect_error(ExitCode::data, "not a JSON object",
               words({"--input-format", "jsonl", "-o", folder_ / "out"}), "A dog.\n");
  EXPECT_EQ(content("out"), "old\n");
}

}  // namespace
}  // namespace fovea

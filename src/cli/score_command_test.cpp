#include <cmath>
#include <nlohmann/json.hpp>

#include "support/command_run.h"

namespace fovea {
namespace {

class Score : public CommandTest {
 protected:
  Words words(const Words& more) const {
    Words all{"score", "-m", "transformer", "-s", source_, "-t", target_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  const std::string source_ = file("en", "A dog.\n\nTwo men.\n");
  const std::string target_ = file("de", "Ein Hund.\n\nZwei Männer.\n");
};

TEST_F(Score, ALineForEachPair) {
  const std::string text = output(words({}));
  std::istringstream lines(text);
  double first = 1, second = 1, third = 1;
  lines >> first >> second >> third;
  EXPECT_LT(first, 0);
  EXPECT_LT(second, 0) << "the end symbol of an empty pair";
  EXPECT_LT(third, 0);
  EXPECT_EQ(output({"score", "-m", "transformer", source_, target_}), text) << "without -s and -t";
  EXPECT_EQ(output(words({"--batch-tokens", "1"})), text);
  EXPECT_EQ(output(words({"-o", folder_ / "out"})), "");
  EXPECT_EQ(content("out"), text);
}

TEST_F(Score, PiecesAddUp) {
  std::istringstream lines(output(words({"-f", "jsonl", "--per-token"})));
  std::string line;
  for (int id = 0; std::getline(lines, line); ++id) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["id"], id);
    EXPECT_EQ(json["tokens"].size(), json["token_scores"].size());
    EXPECT_EQ(json["tokens"].back(), "</s>");
    double sum = 0;
    for (const double score : json["token_scores"]) sum += score;
    EXPECT_NEAR(sum, json["log_prob"], 1e-4);
  }
  const std::string text = output(words({"--per-token"}));
  EXPECT_TRUE(has(text, " </s> -")) << text;
  EXPECT_TRUE(has(text, "\t")) << text;
}

TEST_F(Score, TheSummaryIsThePerplexityOfAllPieces) {
  const auto json = nlohmann::json::parse(output(words({"--summary", "-f", "jsonl"})));
  EXPECT_EQ(json["sentences"], 3);
  EXPECT_NEAR(json["perplexity"],
              std::exp(-json["log_prob"].get<double>() / json["tokens"].get<double>()), 1e-4);
  const std::string text = output(words({"--summary"}));
  EXPECT_TRUE(text.starts_with("perplexity ")) << text;
  EXPECT_TRUE(text.ends_with(" pieces, 3 sentences\n")) << text;
}

TEST_F(Score, LongLinesAreTruncatedWithAWarning) {
  std::string line;
  for (int i = 0; i < 200; ++i) line += "Hund ";
  const std::string target = file("long", line + "\n"), source = file("one", "A dog.\n");
  EXPECT_TRUE(has(messages({"score", "-m", "transformer", source, target}),
                  target + ":1: 200 pieces, the model accepts 127; only the beginning was scored"));
}

TEST_F(Score, Errors) {
  expect_error(ExitCode::usage, "--source is required: Source sentences", {"score"});
  expect_error(ExitCode::usage, "--target is required: ", {"score", source_});
  expect_error(ExitCode::usage, "only one of the two files can be standard input",
               {"score", "-m", "transformer", "-", "-"});
  expect_error(ExitCode::usage, "-o " + source_ + ": is also the input", words({"-o", source_}));
  const std::string shorter = file("short", "Ein Hund.\n");
  expect_error(ExitCode::data, source_ + ":2: no matching line in " + shorter,
               {"score", "-m", "transformer", source_, shorter});
  const std::string empty = file("empty", "");
  expect_error(ExitCode::data, empty + " is empty, so its perplexity is undefined",
               {"score", "-m", "transformer", "--summary", empty, empty});
}

}  // namespace
}  // namespace fovea

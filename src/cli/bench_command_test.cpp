#include <nlohmann/json.hpp>

#include "support/command_run.h"

namespace fovea {
namespace {

class Bench : public CommandTest {
 protected:
  nlohmann::json figures(Words more) {
    Words words{"bench"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--model", "tiny", "--batch", "2", "--length", "6", "--repeats", "1",
                               "--threads", "1", "--json"});
    const std::string text = output(words);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    return nlohmann::json::parse(text);
  }
};

TEST_F(Bench, TrainingAsJson) {
  const auto json = figures({"train", "--updates", "1", "--precision", "f32"});
  EXPECT_EQ(json["figure"], "train");
  EXPECT_EQ(json["model"], "tiny");
  EXPECT_EQ(json["batch"], 2);
  EXPECT_EQ(json["length"], 6);
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["precision"], "f32");
  EXPECT_GT(json["parameters"], 1'000'000);
  const double rate = json["tokens_per_s"];
  EXPECT_GT(rate, 0);
  EXPECT_EQ(json["spread"][0], rate) << "a single measurement";
  EXPECT_EQ(json["spread"][1], rate);
  EXPECT_GT(json["ms_per_update"], 0);
  EXPECT_NEAR(json["share_of_peak"].get<double>(),
              json["gflops"].get<double>() / json["peak_gflops"].get<double>(), 0.02);
  EXPECT_GT(json["arena_bytes"], 1 << 20);
  EXPECT_GT(json["peak_memory_bytes"], json["arena_bytes"].get<int64_t>() / 2);
}

TEST_F(Bench, DecodingHasItsOwnFigures) {
  const auto json = figures({"decode", "--beam", "2", "--new-words", "5"});
  EXPECT_EQ(json["figure"], "decode");
  EXPECT_EQ(json["beam"], 2);
  EXPECT_EQ(json["new_words"], 5);
  EXPECT_EQ(json["precision"], "f32");
  // The latency is the time of two sentences of five words.
  const double seconds = json["latency_ms"].get<double>() / 1000;
  EXPECT_NEAR(10 / json["tokens_per_s"].get<double>(), seconds, 0.1 * seconds + 1e-4);
  EXPECT_FALSE(json.contains("ms_per_update"));
}

TEST_F(Bench, TextHasALineForEachFigure) {
  const std::string text = output({"bench", "decode", "--batch", "1", "--length", "4",
                                   "--new-words", "2", "--beam", "1", "--repeats", "1"});
  for (const char* line : {"figure                 decode\n", "model                  tiny\n",
                           "\ntokens per s  ", "\nshare of peak  ", " %\n", " MiB\n"})
    EXPECT_TRUE(has(text, line)) << line << text;
}

TEST_F(Bench, Errors) {
  expect_error(ExitCode::usage, "give one of: train, decode", {"bench"});
  expect_error(ExitCode::usage, "expected one of base, iwslt, luong, rnnsearch, small, tiny",
               {"bench", "train", "--model", "huge"});
  expect_error(ExitCode::usage, "--precision: expected one of f32, bf16, found 'int8'",
               {"bench", "train", "--precision", "int8"});
  expect_error(ExitCode::usage, "--length: expected a whole number from 2 to 500, found '1'",
               {"bench", "decode", "--length", "1"});
}

}  // namespace
}  // namespace fovea

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "cli/command_line.h"
#include "cli/commands.h"

namespace fovea {
namespace {

const std::string kGolden = FOVEA_SOURCE "/tests/golden/sacrebleu/";

std::string run(std::vector<std::string> arguments) {
  Program program("", "");
  add_evaluate(program);
  arguments.insert(arguments.begin(), "evaluate");
  testing::internal::CaptureStdout();
  try {
    program.run(arguments);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

Error failure(const std::vector<std::string>& arguments) {
  try {
    run(arguments);
  } catch (const Error& e) {
    return e;
  }
  return {ExitCode::done, "no error"};
}

bool refused(const std::vector<std::string>& arguments, const std::string& why) {
  const Error error = failure(arguments);
  return error.code() == ExitCode::usage &&
         std::string(error.what()).find(why) != std::string::npos;
}

class Evaluate : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::string path = folder_ + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  void SetUp() override {
    folder_ = testing::TempDir() + "evaluate_test/";
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_F(Evaluate, TextLine) {
  EXPECT_EQ(run({"-r", kGolden + "ref.txt", "-i", kGolden + "sysA.txt"}),
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:fovea-" FOVEA_VERSION
            "|sacrebleu-compatible:2.6.0 = 55.9 84.0/67.3/55.3/45.9 (BP = 0.908 ratio = 0.912 "
            "hyp_len = 3394 ref_len = 3720)\n");
  EXPECT_EQ(run({"-r", kGolden + "ref.txt", "-i", kGolden + "sysA.txt", "-b", "-w", "3", "-m",
                 "bleu", "chrf", "chrf++", "ter"}),
            "55.930\n62.969\n64.362\n27.198\n");
}

TEST_F(Evaluate, JsonKeysAreSacrebleus) {
  auto json = nlohmann::ordered_json::parse(
      run({"-r", kGolden + "ref.txt", kGolden + "ref2.txt", "-i", kGolden + "sysA.txt", "-f",
           "json", "--confidence", "-w", "4"}));
  EXPECT_EQ(json.at("score"), 59.1858);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"name", "score", "signature", "confidence_mean",
                                            "confidence_var", "confidence", "verbose_score",
                                            "nrefs", "bs", "seed", "case", "eff", "tok", "smooth",
                                            "version", "sacrebleu-compatible"}));
  auto list = nlohmann::json::parse(run(
      {"-r", kGolden + "ref.txt", "-i", kGolden + "sysA.txt", "-f", "json", "-m", "bleu", "ter"}));
  EXPECT_EQ(list.size(), 2u);
}

TEST_F(Evaluate, PairedTestsOfSeveralSystems) {
  std::vector<std::string> arguments{
      "-r",   kGolden + "ref.txt", "-i", kGolden + "sysA.txt", kGolden + "sysB.txt", "-f",
      "json", "--paired-bs"};
  auto json = nlohmann::json::parse(run(arguments));
  EXPECT_EQ(json[0]["system"], "Baseline: " + kGolden + "sysA.txt");
  EXPECT_TRUE(json[0]["BLEU"]["p_value"].is_null());
  EXPECT_EQ(json[1]["BLEU"]["p_value"], 0.001998001998001998);
  arguments.back() = "--paired-ar";
  EXPECT_EQ(nlohmann::json::parse(run(arguments))[1]["BLEU"]["p_value"], 0.0007999200079992001);
  arguments[6] = "text";
  std::string table = run(arguments);
  EXPECT_NE(table.find("64.3 (p = 0.0008)*"), std::string::npos) << table;
}

TEST_F(Evaluate, EqualSystemsGetNoStar) {
  for (const char* test : {"--paired-bs", "--paired-ar"}) {
    std::string table = run({"-r", kGolden + "ref.txt", "-i", kGolden + "sysA.txt",
                             kGolden + "sysA.txt", "-m", "bleu", "chrf", "ter", test});
    EXPECT_NE(table.find("(p = 1.0000)"), std::string::npos) << table;
    EXPECT_EQ(table.find(")*"), std::string::npos) << table;
  }
}

TEST_F(Evaluate, OneLinePerSentence) {
  std::string text = run({"-r", kGolden + "ref.txt", "-i", kGolden + "sysA.txt", "-m", "bleu",
                          "ter", "--sentence-level", "-f", "json"});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 200);
  EXPECT_EQ(text.substr(0, text.find('\n')), R"({"line":1,"BLEU":100.0,"TER":0.0})");
}

TEST_F(Evaluate, UnequalFilesNameTheFirstLineWithoutPartner) {
  std::string a = file("a", "x\ny\nz\n"), b = file("b", "x\ny\n"), empty = file("empty", "");
  Error longer = failure({"-r", b, "-i", a});
  EXPECT_EQ(longer.code(), ExitCode::data);
  EXPECT_NE(std::string(longer.what())
                .find(a + " has 3 lines, " + b + " 2; first line without partner: " + a + ":3"),
            std::string::npos)
      << longer.what();
  Error shorter = failure({"-r", a, "-i", b});
  EXPECT_EQ(shorter.code(), ExitCode::data);
  EXPECT_NE(std::string(shorter.what()).find("without partner: " + a + ":3"), std::string::npos);
  EXPECT_EQ(failure({"-r", a, "-i", empty}).code(), ExitCode::data);
  EXPECT_EQ(failure({"-r", empty, "-i", a}).code(), ExitCode::data);
  EXPECT_EQ(failure({"-r", empty, "-i", empty}).code(), ExitCode::data);
  EXPECT_EQ(failure({"-r", a, b, "-i", a}).code(), ExitCode::data);
}

TEST_F(Evaluate, LineEndsDoNotChangeScores) {
  std::string unix_ends = file("unix", "the cat sat on the mat\na dog ran home now\n");
  std::string dos_ends = file("dos", "the cat sat on the mat\r\na dog ran home now");
  EXPECT_EQ(run({"-r", unix_ends, "-i", dos_ends, "-b", "-m", "bleu", "chrf", "ter",
                 "--chrf-whitespace"}),
            "100.0\n100.0\n0.0\n");
}

TEST_F(Evaluate, TokenizedTextIsWarnedAboutOnStderr) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "a cat .\n";
  std::string path = file("tokenized", lines);
  testing::internal::CaptureStderr();
  std::string scores = run({"-r", path, "-i", path, "-b"});
  EXPECT_NE(testing::internal::GetCapturedStderr().find("detokenise"), std::string::npos);
  EXPECT_EQ(scores, "0.0\n");  // three words make no 4-gram
}

TEST_F(Evaluate, UsageErrors) {
  std::string a = file("a", "x\n");
  EXPECT_EQ(failure({"-r", a, "-i", a, "--paired-bs"}).code(), ExitCode::usage);
  EXPECT_EQ(failure({"-r", a, "-i", a, a, "--confidence"}).code(), ExitCode::usage);
  EXPECT_EQ(failure({"-r", a, "-i", a, a, "--sentence-level"}).code(), ExitCode::usage);
  EXPECT_EQ(failure({"-r", "-", "-i", "-"}).code(), ExitCode::usage);
  EXPECT_EQ(failure({"-r", a, "-i", folder_ + "missing"}).code(), ExitCode::files);
  EXPECT_TRUE(refused({"-r", a, "-i", a, "-m", "rouge"},
                      "expected one of bleu, chrf, chrf++, ter, found 'rouge'"));
  EXPECT_TRUE(refused({"-r", a, "-i", a, a, "--paired-bs", "--paired-ar"},
                      "--paired-bs and --paired-ar exclude each other"));
  EXPECT_TRUE(refused({"-i", a}, "--reference is required"));
}

}  // namespace
}  // namespace fovea

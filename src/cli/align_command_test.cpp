#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "temporary.h"

namespace fovea {
namespace {

std::string run(const std::vector<std::string>& arguments) {
  Program program("", "");
  add_align(program);
  add_evaluate(program);
  testing::internal::CaptureStdout();
  try {
    program.run(arguments);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

class Align : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  std::string failure(ExitCode code, const std::vector<std::string>& arguments) {
    return message_of(code, [&] { run(arguments); });
  }

  TemporaryFolder folder_;
};

// ---- files of links ----

TEST_F(Align, JoinsTwoDirections) {
  const std::string a = file("a", "0-0 1-1 2-1 5-4\n\n3-1\n"),
                    b = file("b", "0-0 2-1 4-4\n\n1-3\n");
  EXPECT_EQ(run({"align", "--symmetrize", "intersection", a, b, "--reverse"}), "0-0\n\n3-1\n");
  EXPECT_EQ(run({"align", "--symmetrize", "grow-diag", a, b, "--reverse"}), "0-0 1-1\n\n3-1\n");
  EXPECT_EQ(run({"align", "--symmetrize", "grow-diag-final", a, b, "--reverse"}),
            "0-0 1-1 5-4\n\n3-1\n");
  EXPECT_EQ(run({"align", "--symmetrize", "intersection", a, b}), "0-0 2-1\n\n\n");
}

TEST_F(Align, JoiningRejectsFilesThatDoNotMatch) {
  const std::string a = file("a", "0-0\n1-1\n"), b = file("b", "0-0\n"),
                    bad = file("c", "0-0\n1:1\n");
  EXPECT_NE(failure(ExitCode::data, {"align", "--symmetrize", "union", b, a}).find(a + ":2"),
            std::string::npos);
  EXPECT_NE(
      failure(ExitCode::data, {"align", "--symmetrize", "union", a, bad}).find(bad + ":2: '1:1'"),
      std::string::npos);
  EXPECT_NE(
      failure(ExitCode::usage, {"align", "--symmetrize", "grow", a, a}).find("grow-diag-final"),
      std::string::npos);
  failure(ExitCode::usage, {"align", "--symmetrize", "union", a, a, "-s", a, "-t", a});
  EXPECT_NE(failure(ExitCode::usage, {"align", "--symmetrize", "union", a})
                .find("--symmetrize needs METHOD A B: "),
            std::string::npos);
}

TEST_F(Align, ErrorRateOnTheCommandLine) {
  const std::string gold = file("gold", "1-1 4-4 2p2\n1-1\n"),
                    links = file("links", "0-0 1-1 2-2\n0-0\n");
  EXPECT_EQ(run({"evaluate", "--aer", "-r", gold, "-i", links}),
            "AER = 28.57 (precision = 75.00 recall = 66.67 links = 4 sure = 3)\n");
  EXPECT_EQ(run({"evaluate", "--aer", "-r", gold, "-i", links, "-b", "-w", "1"}), "28.6\n");
  const auto json = nlohmann::json::parse(
      run({"evaluate", "--aer", "-r", gold, "-i", links, links, "-f", "json"}));
  EXPECT_EQ(json[1]["score"], 28.57);
  EXPECT_EQ(json[1]["system"], links);
  const std::string from_0 = file("from_0", "0-0 3-3 1p1\n0-0\n");
  EXPECT_EQ(run({"evaluate", "--aer", "-r", from_0, "-i", links, "-b", "--gold-from", "0"}),
            "28.57\n");
  EXPECT_NE(
      failure(ExitCode::data, {"evaluate", "--aer", "-r", from_0, "-i", links}).find(from_0 + ":1"),
      std::string::npos);
  const std::string one = file("one", "0-0\n");
  EXPECT_NE(failure(ExitCode::data, {"evaluate", "--aer", "-r", gold, "-i", one}).find(gold + ":2"),
            std::string::npos);
  failure(ExitCode::usage, {"evaluate", "--aer", "-r", gold, gold, "-i", one});
  failure(ExitCode::usage, {"evaluate", "--aer", "-r", gold, "-i", one, "--confidence"});
}

// ---- with the bundled model ----

class AlignModel : public Align {
 protected:
  std::vector<std::string> arguments(std::initializer_list<std::string> more) {
    std::vector<std::string> all{"align", "-m",   FOVEA_SOURCE "/models/en-de", "-s", source_,
                                 "-t",    target_};
    all.insert(all.end(), more);
    return all;
  }

  const std::string source_ = file("en", "a dog runs through the snow .\n\ntwo men\n"),
                    target_ =
                        file("de", "ein hund läuft durch den schnee .\nnichts\nzwei männer\n");
  // words are counted from 1
  const std::string gold_ = file("gold", "1-1 2-2 3-3 4-4 5-5 6-6 7-7\n\n1-1 2-2\n");
};

TEST_F(AlignModel, TheBestHeadFindsTheWords) {
  const std::string found = run(arguments({"--best-on", source_, target_, gold_}));
  EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 3);
  EXPECT_EQ(found.substr(found.find('\n'), 2), "\n\n") << "an empty line has no links: " << found;
  const std::string links = file("links", found);
  EXPECT_LT(std::stod(run({"evaluate", "--aer", "-r", gold_, "-i", links, "-b"})), 25) << found;
}

TEST_F(AlignModel, AHeadTrainedOnAlignmentsIsTheDefault) {
  const std::filesystem::path shipped = FOVEA_SOURCE "/models/en-de", guided = folder_ / "guided";
  std::filesystem::create_directory(guided);
  for (const auto& entry : std::filesystem::directory_iterator(shipped))
    if (entry.path().filename() != "config.yml")
      std::filesystem::create_symlink(entry.path(), guided / entry.path().filename());
  const auto configure = [&](const char* step) {
    std::ifstream config(shipped / "config.yml");
    std::ofstream changed(guided / "config.yml");
    for (std::string line; std::getline(config, line);)
      if (line.find("alignment_") == std::string::npos) changed << line << '\n';
    changed << "model.alignment_layer: 1\nmodel.alignment_head: 2\nmodel.alignment_step: " << step;
  };
  configure("writes");
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all{"align", "-m", guided.string(), "-s", source_, "-t", target_};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  const std::string plain = run(arguments({}));
  EXPECT_EQ(with({"--soft"}), run(arguments({"--layer", "1", "--head", "2", "--soft"})));
  EXPECT_NE(with({"--soft"}), run(arguments({"--soft"})));
  EXPECT_EQ(with({"--mean"}), plain);
  EXPECT_EQ(with({"--layer", "0"}), run(arguments({"--layer", "0"})));
  configure("reads");
  EXPECT_EQ(with({"--soft"}), run(arguments({"--layer", "1", "--head", "2", "--shift", "--soft"})));
  EXPECT_EQ(with({"--layer", "0"}), run(arguments({"--layer", "0"})));
}

TEST_F(AlignModel, ReverseSwapsTheSidesOfLinks) {
  // "never" is "noch nie" in German, and the participle moves to the end.
  const std::string source = file("seen.en", "i have never seen such a garden .\n"),
                    target = file("seen.de", "ich habe noch nie so einen garten gesehen .\n"),
                    model = FOVEA_SOURCE "/models/en-de";
  const std::string plain = run({"align", "-m", model, "-s", source, "-t", target});
  const std::string other = run({"align", "-m", model, "-s", source, "-t", target, "--reverse"});
  const std::string first = file("plain", plain), second = file("other", other);
  EXPECT_EQ(run({"align", "--symmetrize", "intersection", first, second, "--reverse"}), plain);
  EXPECT_NE(plain, other);
}

TEST_F(AlignModel, WeightsOmitTheEndSymbols) {
  const std::string text = run(arguments({"-f", "jsonl", "--soft", "--threshold", "0.3"}));
  const auto pair = nlohmann::json::parse(text.substr(0, text.find('\n')));
  ASSERT_EQ(pair["weights"].size(), 7u);
  size_t above = 0;
  for (const auto& row : pair["weights"]) {
    ASSERT_EQ(row.size(), 7u);
    double sum = 0;
    for (const double weight : row) {
      sum += weight;
      above += weight > 0.3;
    }
    EXPECT_LE(sum, 1.0001);  // the end symbol has the rest
    EXPECT_GT(sum, 0);
  }
  EXPECT_EQ(pair["alignment"].size(), above);
  const std::string soft = run(arguments({"--soft"}));
  EXPECT_EQ(std::count(soft.begin(), soft.end(), ':'), 9) << soft;
}

TEST_F(AlignModel, BatchSizeDoesNotChangeLinks) {
  EXPECT_EQ(run(arguments({})), run(arguments({"--batch-tokens", "1"})));
}

TEST_F(AlignModel, Errors) {
  EXPECT_NE(failure(ExitCode::usage, arguments({"--layer", "7"})).find("layers 0 to 1"),
            std::string::npos);
  failure(ExitCode::usage, arguments({"--head", "9"}));
  failure(ExitCode::usage, {"align", "-s", source_});
  failure(ExitCode::usage, {"align", "-s", "-", "-t", "-"});
  const std::string shorter = file("short", "eins\n");
  EXPECT_NE(failure(ExitCode::data,
                    {"align", "-m", FOVEA_SOURCE "/models/en-de", "-s", source_, "-t", shorter})
                .find(source_ + ":2: no matching line"),
            std::string::npos);
  EXPECT_NE(
      failure(ExitCode::data, arguments({"--best-on", source_, target_, shorter})).find(shorter),
      std::string::npos);
  const std::string beyond = file("beyond", "1-1\n\n1-3\n");
  EXPECT_NE(failure(ExitCode::data, arguments({"--best-on", source_, target_, beyond}))
                .find(beyond + ":3: found a link between source word 1 and target word 3"),
            std::string::npos);
  EXPECT_NE(failure(ExitCode::usage, arguments({"--mean", "--layer", "1"}))
                .find("--layer and --mean exclude each other"),
            std::string::npos);
}

}  // namespace
}  // namespace fovea

#include "cli/flag_names.h"

#include <filesystem>
#include <regex>
#include <set>

#include "support/command_run.h"

namespace fovea {
namespace {

TEST(FlagNames, ReplaceTheFieldsOfAMessage) {
  EXPECT_EQ(with_flags("lower `batch_tokens` or `beam`"), "lower --batch-tokens or --beam");
  EXPECT_EQ(with_flags("`model`: empty; omit `model`"), "-m: empty; omit -m");
  EXPECT_EQ(with_flags("choose another directory with `output`"),
            "choose another directory with -o");
}

TEST(FlagNames, OtherWordsDoNotChange) {
  for (const char* text : {"", "`", "beam", "`beam", "beam`", "``", "`no_such_field`", "'beam'",
                           "`config.yml`", "` beam`", "`Beam`", "`to top_k`"})
    EXPECT_EQ(with_flags(text), text);
}

TEST(FlagNames, AnUnknownNameDoesNotHideTheNextField) {
  EXPECT_EQ(with_flags("`x` `beam`"), "`x` --beam");
  EXPECT_EQ(with_flags("`x`beam`"), "`x--beam");
  EXPECT_EQ(with_flags("```beam`"), "``--beam");
}

// The words in backquotes of the string literals of a source file.
std::set<std::string> fields_of(const std::filesystem::path& path) {
  static const std::regex literal(R"re("(?:[^"\\]|\\.)*")re"), word("`([a-z_]+)`");
  std::set<std::string> fields;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t comment = line.find("//");
    if (comment != line.npos && line.find('"') > comment) continue;
    for (std::sregex_iterator text(line.begin(), line.end(), literal), end; text != end; ++text) {
      const std::string found = text->str();
      for (std::sregex_iterator at(found.begin(), found.end(), word); at != end; ++at)
        fields.insert((*at)[1]);
    }
  }
  return fields;
}

// All fields that messages below src/cli name.
std::set<std::string> fields_of_messages() {
  std::set<std::string> fields;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(FOVEA_SOURCE "/src")) {
    const std::string path = entry.path().string();
    if (!entry.is_regular_file() || path.find("/cli/") != path.npos ||
        path.find("_test.") != path.npos)
      continue;
    fields.merge(fields_of(entry.path()));
  }
  return fields;
}

TEST(FlagNames, EveryFieldOfAMessageHasAFlag) {
  const std::set<std::string> fields = fields_of_messages();
  EXPECT_TRUE(fields.contains("beam"));
  EXPECT_GT(fields.size(), 20u);
  for (const std::string& field : fields) {
    const std::string quoted = "`" + field + "`";
    EXPECT_NE(with_flags(quoted), quoted) << "add it to flag_names.cpp";
  }
}

using FlagNamesOfCommands = CommandTest;

TEST_F(FlagNamesOfCommands, EveryFlagIsAnOptionOfACommand) {
  std::string help;
  for (const char* command : {"translate", "show", "align", "vocab", "embed", "neighbours", "train",
                              "compare", "serve", "evaluate"})
    help += output({command, "--help"});
  for (const std::string& field : fields_of_messages()) {
    const std::string flag = with_flags("`" + field + "`");
    const std::regex option("(^|[ ,\n])" + flag + "[ ,\n]");
    EXPECT_TRUE(std::regex_search(help, option)) << flag;
  }
}

TEST_F(FlagNamesOfCommands, ErrorsAndWarningsNameFlags) {
  expect_error(ExitCode::usage, "fovea: --n-best 5 is larger than --beam 2; set --beam 5 or more",
               {"translate", "-b", "2", "-n", "5", "-f", "jsonl", "A dog."});
  expect_error(ExitCode::usage, "fovea: -m: the model name is empty; give a model directory",
               {"translate", "-m", "", "A dog."});
  expect_error(ExitCode::usage, "fovea: --set model.layer=3: unknown key 'model.layer'",
               {"train", "--set", "model.layer=3"});
  expect_error(ExitCode::usage, "fovea: -o " + file("x", "dog\n") + ": is also the input",
               {"translate", "-i", folder_ / "x", "-o", folder_ / "x"});
  EXPECT_TRUE(has(messages({"translate", "-b", "1", "我爱中国。"}),
                  "the text looks like Chinese; --from, --to or -m choose another"));
}

}  // namespace
}  // namespace fovea

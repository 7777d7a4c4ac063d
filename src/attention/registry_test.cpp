#include "attention/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/files.h"

namespace fovea {
namespace {

AttentionConfig config_of(const std::string& kind, const std::string& score = "auto") {
  AttentionConfig config;
  config.kind = kind;
  config.score = score;
  return config;
}

// The error message of check(), or "" if the configuration is valid.
std::string error_of(const AttentionConfig& config, const AttentionSizes& sizes) {
  try {
    config.check(ExitCode::data, sizes);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::data);
    return e.what();
  }
  return {};
}

std::vector<std::string> names(const std::string& kind, const std::string& score = "auto") {
  ParameterStore store;
  const auto made = make_attention(ParameterScope{store, ""}, config_of(kind, score), {6, 8, 20});
  EXPECT_EQ(made != nullptr, kind != "none");
  std::vector<std::string> all;
  for (const auto& p : store.all()) all.push_back(p.name);
  std::ranges::sort(all);
  return all;
}

using Names = std::vector<std::string>;

TEST(AttentionRegistry, ParametersHaveTheLettersOfTheirPapers) {
  EXPECT_EQ(names("none"), Names{});
  EXPECT_EQ(names("global"), (Names{"U_a", "W_a", "v"}));
  EXPECT_EQ(names("global", "general"), Names{"W"});
  EXPECT_EQ(names("hard-argmax", "concat"), (Names{"W", "v"}));
  EXPECT_EQ(names("hard-sample", "location"), Names{"W_a"});
  EXPECT_EQ(names("local-m", "general"), Names{"W"});
  EXPECT_EQ(names("local-p", "general"), (Names{"W", "W_p", "v_p"}));
  EXPECT_EQ(names("forward", "additive"), (Names{"U_a", "W_a", "v"}));
  EXPECT_EQ(names("static", "dot"), Names{});
  EXPECT_EQ(names("window"), (Names{"W", "b"}));
}

TEST(AttentionRegistry, EveryPossibleCombinationIsAccepted) {
  for (const AttentionMechanism& mechanism : attention_mechanisms()) {
    const std::string kind = mechanism.about.name;
    EXPECT_EQ(error_of(config_of(kind), {6, 8, 20}), "") << kind;
    if (mechanism.scoring == AttentionMechanism::ScoreUse::none) continue;
    for (const AttentionInfo& score : attention_scores())
      EXPECT_EQ(error_of(config_of(kind, score.name), {8, 8, 20}), "") << kind << score.name;
  }
}

// Every setting that a row names is a setting of AttentionConfig.
TEST(AttentionRegistry, RowsNameTheirSettings) {
  struct Model {
    AttentionConfig attention;
    void describe(Settings& s) { attention.describe(s); }
  };
  Model model;
  Settings settings;
  settings.group("model", model);
  std::set<std::string> known;
  for (const auto& [path, value] : settings.values()) known.insert(path);
  for (const AttentionMechanism& mechanism : attention_mechanisms())
    for (const char* key : mechanism.about.settings)
      EXPECT_TRUE(known.contains(std::string("model.") + key)) << key;
  for (const AttentionInfo& score : attention_scores())
    for (const char* key : score.settings)
      EXPECT_TRUE(known.contains(std::string("model.") + key)) << key;
}

// A row of a table of docs/mechanisms.md.
std::string row_of(const AttentionInfo& about) {
  std::string settings;
  for (const char* key : about.settings)
    settings += (settings.empty() ? "`" : ", `") + std::string(key) + "`";
  return "\n| `" + std::string(about.name) + "` | " + about.title + " | " + about.text + " | " +
         about.paper + " | " + settings + " |\n";
}

TEST(AttentionRegistry, TheDocumentHasEveryRow) {
  const std::string text = read_file(FOVEA_SOURCE "/docs/mechanisms.md", 1 << 20);
  std::vector<AttentionInfo> all = attention_scores();
  for (const AttentionMechanism& mechanism : attention_mechanisms()) all.push_back(mechanism.about);
  all.push_back(multi_head_attention());
  for (const AttentionInfo& about : all)
    EXPECT_NE(text.find(row_of(about)), std::string::npos) << row_of(about);
  size_t rows = 0;
  for (size_t at = text.find("\n| `"); at != text.npos; at = text.find("\n| `", at + 1)) ++rows;
  EXPECT_EQ(rows, all.size());
}

TEST(AttentionRegistry, ImpossibleCombinationsAreRejectedWithTheReason) {
  auto expect = [](const AttentionConfig& config, const AttentionSizes& sizes, const char* part) {
    EXPECT_NE(error_of(config, sizes).find(part), std::string::npos) << error_of(config, sizes);
  };
  expect(config_of("global", "dot"), {6, 8, 20}, "a state has 6 numbers and an annotation 8");
  expect(config_of("forward", "scaled-dot"), {6, 8, 20}, "scaled-dot multiplies");
  EXPECT_EQ(error_of(config_of("static", "dot"), {6, 8, 20}), "");  // its query has the size of h
  expect(config_of("window", "additive"), {6, 8, 20}, "has no score, found additive");
  expect(config_of("none", "dot"), {8, 8, 20}, "has no score, found dot");
  expect(config_of("sideways"), {6, 8, 20}, "there is no 'sideways'");
  expect(config_of("global", "sideways"), {6, 8, 20}, "there is no 'sideways'");
  expect(config_of("global", "location"), {6, 8, 0}, "needs the number of positions");
  expect(config_of("static"), {6, 7, 20}, "odd size of 7");
  EXPECT_EQ(error_of(config_of("static"), {6, 7, 20, SummaryStates::last_word}), "");

  AttentionConfig table = config_of("local-m", "location");
  table.location_length = 19;
  expect(table, {6, 8, 20}, "19 positions are fewer than model.max_length, 20");
  table.location_length = 20;
  EXPECT_EQ(error_of(table, {6, 8, 20}), "");
  table = config_of("global", "location");
  table.location_length = 5;
  EXPECT_EQ(error_of(table, {6, 8, 20}), "");

  AttentionConfig none = config_of("local-p");
  none.window = 0;
  expect(none, {6, 8, 20}, "at least 1");
}

TEST(AttentionRegistry, SettingsReadBack) {
  struct Model {
    AttentionConfig attention;
    void describe(Settings& s) { attention.describe(s); }
  };
  Model from, to;
  Settings write, read;
  write.group("model", from);
  write.set("model.attention=local-p");
  write.set("model.score=scaled-dot");
  write.set("model.window=3");
  write.set("model.entropy_weight=0.5");
  read.group("model", to);
  read.read_text(write.dump(), "dump");
  EXPECT_EQ(to.attention.kind, "local-p");
  EXPECT_EQ(to.attention.score, "scaled-dot");
  EXPECT_EQ(to.attention.window, 3);
  EXPECT_EQ(to.attention.lambda_e, 0.5);
  EXPECT_THROW(write.set("model.attention=local"), Error);
  EXPECT_THROW(write.set("model.window=0"), Error);
}

}  // namespace
}  // namespace fovea

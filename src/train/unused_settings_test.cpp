#include "train/unused_settings.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TrainOptions with(std::initializer_list<const char*> assignments) {
  TrainOptions options;
  Settings settings;
  options.describe(settings);
  for (const char* assignment : assignments) settings.set(assignment);
  settings.set("data.train_source=a");
  settings.set("data.train_target=b");
  options.complete(ExitCode::data);
  return options;
}

// The names of the settings that are reported to have no effect.
std::vector<std::string> unused(std::initializer_list<const char*> assignments) {
  std::vector<std::string> names;
  for (const std::string& message : unused_settings(with(assignments)))
    names.push_back(message.substr(0, message.find(':')));
  return names;
}

using Names = std::vector<std::string>;

TEST(UnusedSettings, OfVocabularies) {
  EXPECT_EQ(unused({}), Names{});
  EXPECT_EQ(unused({"vocabulary.min_count=2"}), Names{"vocabulary.min_count"});
  EXPECT_EQ(unused({"vocabulary.kind=bpe", "vocabulary.min_count=2"}),
            Names{"vocabulary.min_count"});
  EXPECT_EQ(unused({"vocabulary.kind=words", "vocabulary.min_count=2"}), Names{});
  EXPECT_EQ(unused({"vocabulary.kind=words", "vocabulary.character_coverage=0.99"}),
            Names{"vocabulary.character_coverage"});
  EXPECT_EQ(unused({"vocabulary.source=v.txt", "vocabulary.kind=words", "vocabulary.min_count=2"}),
            Names{"vocabulary.min_count"});
}

TEST(UnusedSettings, OfOneMechanismWithAnother) {
  const auto recurrent = [](const char* attention, const char* assignment) {
    return unused({"model.type=recurrent", attention, assignment});
  };
  const struct {
    const char *attention, *setting, *value;
  } owners[] = {{"local-m", "model.window", "4"},
                {"local-p", "model.attention_size", "4"},
                {"forward", "model.slack", "3"},
                {"window", "model.gaussians", "7"},
                {"hard-sample", "model.reward_weight", "2"}};
  for (const auto& owner : owners) {
    const std::string attention = std::string("model.attention=") + owner.attention;
    const std::string assignment = std::string(owner.setting) + "=" + owner.value;
    EXPECT_EQ(recurrent(attention.c_str(), assignment.c_str()), Names{});
    EXPECT_EQ(recurrent("model.attention=none", assignment.c_str()), Names{owner.setting});
  }
  EXPECT_EQ(recurrent("model.attention=global", "model.window=4"), Names{"model.window"});
  EXPECT_EQ(recurrent("model.attention=global", "model.attention_size=4"), Names{});
  EXPECT_EQ(recurrent("model.score=general", "model.attention_size=4"),
            Names{"model.attention_size"});
  EXPECT_EQ(recurrent("model.score=general", "model.location_length=4"),
            Names{"model.location_length"});
  EXPECT_EQ(recurrent("model.score=location", "model.location_length=600"), Names{});
}

TEST(UnusedSettings, OfAttentionWithoutAttention) {
  const char *type = "model.type=recurrent", *none = "model.attention=none";
  EXPECT_EQ(unused({type, none, "model.decoder=luong"}), Names{"model.decoder"});
  EXPECT_EQ(unused({type, none, "model.readout=512"}), Names{"model.readout"});
  EXPECT_EQ(unused({type, none, "model.input_feeding=false"}), Names{"model.input_feeding"});
  EXPECT_EQ(unused({type, "model.input_feeding=false"}), Names{"model.input_feeding"});
  EXPECT_EQ(unused({type, "model.decoder=luong", "model.input_feeding=false"}), Names{});
}

TEST(UnusedSettings, ContradictoryVocabulariesAreRefused) {
  const auto refused = [](const char* setting, std::initializer_list<const char*> assignments) {
    try {
      with(assignments);
      ADD_FAILURE() << setting << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_EQ(std::string(error.what()).find(setting), 0u) << error.what();
    }
  };
  refused("vocabulary.target: ", {"vocabulary.target=v.spm"});
  refused("vocabulary.joint: ",
          {"vocabulary.source=v.spm", "vocabulary.joint=false", "model.tied=none"});
  refused("vocabulary.size: 0", {"vocabulary.size=0"});
  refused("vocabulary.size: 0", {"vocabulary.size=0", "vocabulary.kind=bpe"});
  EXPECT_NO_THROW(with({"vocabulary.size=0", "vocabulary.kind=words"}));
  EXPECT_NO_THROW(with({"vocabulary.source=v.spm", "vocabulary.size=0"}));
}

}  // namespace
}  // namespace fovea

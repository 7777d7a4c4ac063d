#include "models/model_config.h"

#include <gtest/gtest.h>

#include "support/network_settings.h"
#include "temporary.h"

namespace fovea {
namespace {

struct Fixture {
  ModelConfig config;
  Settings settings;

  Fixture() { settings.group("model", config); }
  void set(std::initializer_list<const char*> assignments) {
    for (const char* assignment : assignments) settings.set(assignment);
  }
  std::string value(const std::string& path) const {
    for (const auto& [key, value] : settings.values())
      if (key == path) return value;
    return "absent";
  }
};

TEST(ModelConfig, TheTypeMayFollowItsSettings) {
  Fixture f;
  f.settings.read_text("model: {cell: lstm, attention: none, readout: 3, type: recurrent}", "r");
  const RecurrentConfig& own = recurrent_of(f.config);
  EXPECT_EQ(own.cell, Cell::lstm);
  EXPECT_EQ(own.attention.kind, "none");
  EXPECT_EQ(own.readout, 3);
  EXPECT_EQ(f.value("model.heads"), "absent");
}

TEST(ModelConfig, AChangeOfTheTypeKeepsSettings) {
  Fixture f;
  f.set({"model.heads=4", "model.type=recurrent", "model.embedding=7", "model.readout=3"});
  EXPECT_EQ(recurrent_of(f.config).embedding, 7);
  f.set({"model.type=reader", "model.query=question"});
  EXPECT_EQ(reader_of(f.config).embedding, 7) << "readers share the encoder's settings";
  EXPECT_EQ(f.value("model.readout"), "absent");
  f.set({"model.encoder_size=5", "model.type=recurrent"});
  EXPECT_EQ(recurrent_of(f.config).encoder_size, 5);
  EXPECT_EQ(recurrent_of(f.config).readout, 3);
  f.set({"model.type=transformer"});
  EXPECT_EQ(transformer_of(f.config).heads, 4);
}

TEST(ModelConfig, SettingsHaveTheCurrentValues) {
  Fixture f;
  transformer_of(f.config).heads = 2;
  EXPECT_EQ(f.value("model.heads"), "2");
  f.set({"model.inner=9"});
  EXPECT_EQ(transformer_of(f.config).heads, 2);
  f.config.network = ReaderConfig();
  EXPECT_EQ(f.value("model.type"), "reader");
  EXPECT_NE(f.settings.dump().find("  query: summary\n"), std::string::npos);
}

TEST(ModelConfig, KeysOfOtherTypesAreRejected) {
  for (const char* text :
       {"model: {type: reader, heads: 4}", "model: {cell: lstm}",
        "model: {type: reader, decoder_layers: 2}", "model: {type: recurrent, query: question}"})
    EXPECT_THROW(Fixture().settings.read_text(text, "r"), Error) << text;
}

TEST(ModelConfig, HasTheSettingsOfGeneration) {
  Fixture f;
  f.settings.read_text("model: {generation: {beam: 6, suppress: [<pad>], early_stopping: never}}",
                       "r");
  EXPECT_EQ(f.config.generation.beam, 6);
  EXPECT_EQ(f.config.generation.suppress, std::vector<std::string>{"<pad>"});
  EXPECT_EQ(f.config.generation.early_stopping, EarlyStopping::never);
  EXPECT_EQ(f.value("model.generation.start"), R"("<s>")");  // quoted, as in a file
  f.set({"model.type=reader"});
  EXPECT_EQ(f.value("model.generation.start"), "absent");
}

TEST(ModelConfig, ImpossibleSettingsOfGenerationAreRejected) {
  const auto message = [](const char* settings) {
    Fixture f;
    f.settings.read_text(
        std::string("model: {max_length: 8, tied: none, generation: {") + settings + "}}", "r");
    return message_of(ExitCode::model, [&] { f.config.check(ExitCode::model); });
  };
  EXPECT_NE(message("target_prefix: [a, b, c, d, e, f, g]").find("a sentence are 8"),
            std::string::npos);
  EXPECT_NE(message("min_length: 5, max_length: 4").find("min_length: 5 is more than max_length"),
            std::string::npos);
  EXPECT_NE(message("early_stopping: true").find("only beam_rule transformers has it"),
            std::string::npos);
}

}  // namespace
}  // namespace fovea

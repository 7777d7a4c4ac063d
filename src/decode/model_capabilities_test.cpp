#include "decode/model_capabilities.h"

#include "models/label_predictor.h"
#include "models/model_config.h"
#include "models/replayable.h"
#include "support/network_settings.h"
#include "temporary.h"

namespace fovea {
namespace {

std::unique_ptr<Model> model_of(const std::string& type) {
  ModelConfig c;
  choose_network(c, type);
  c.encoder_layers = c.decoder_layers = 1;
  c.size = 8;
  c.source_words = c.target_words = 10;
  if (type == "reader") reader_of(c).attention.kind = "static";
  return make_model(c, 1);
}

TEST(ModelCapabilities, OfEachTypeOfModel) {
  const auto transformer = model_of("transformer"), recurrent = model_of("recurrent"),
             reader = model_of("reader");
  for (const Model* model : {transformer.get(), recurrent.get()}) {
    EXPECT_TRUE(model->as<Decodable>());
    EXPECT_TRUE(model->as<Explainable>());
    EXPECT_TRUE(model->as<Replayable>());
    EXPECT_FALSE(model->as<DeviceDecodable>()) << "on the CPU";
    EXPECT_FALSE(model->as<LabelPredictor>());
    EXPECT_EQ(&decodable(*model), model->as<Decodable>());
    const auto changed = explainable(*model).with_intervention({});
    EXPECT_TRUE(changed->as<Decodable>());
    EXPECT_TRUE(changed->as<Attentive>());
  }
  EXPECT_TRUE(transformer->as<Extendable>());
  EXPECT_FALSE(recurrent->as<Extendable>());
  EXPECT_TRUE(reader->as<LabelPredictor>());
  EXPECT_FALSE(reader->as<Replayable>()) << "its loss reads numbers of the host";
}

TEST(ModelCapabilities, ErrorsOfAClassifierSayWhatIsMissing) {
  const auto reader = model_of("reader");
  EXPECT_EQ(message_of(ExitCode::usage, [&] { decodable(*reader); }),
            "this type of model cannot translate; choose another model");
  EXPECT_EQ(message_of(ExitCode::usage, [&] { attentive(*reader); }),
            "this type of model has no attention from target to source; choose another model");
  EXPECT_EQ(message_of(ExitCode::usage, [&] { explainable(*reader); }),
            "this type of model has no attention that can be explained or changed; choose another "
            "model");
}

}  // namespace
}  // namespace fovea

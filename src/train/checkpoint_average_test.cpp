#include <gtest/gtest.h>

#include "models/model_directory.h"
#include "support/network_settings.h"
#include "temporary.h"
#include "train/checkpoint.h"

namespace fovea {
namespace {

ModelConfig tiny() {
  ModelConfig c;
  c.encoder_layers = c.decoder_layers = 1;
  auto& own = transformer_of(c);
  c.size = 4, own.heads = 2, own.inner = 6;
  c.source_words = c.target_words = 9;
  c.max_length = 20;
  return c;
}

std::vector<double> weights_of(uint64_t seed) {
  return make_model(tiny(), seed)->parameters().values().values();
}

// One file of each kind, and the weights that it represents.
struct Files {
  TemporaryFolder folder;
  std::vector<std::string> paths;
  std::vector<std::vector<double>> weights;

  Files() {
    const auto snapshot = make_model(tiny(), 1);
    write_weights(folder / "snapshot.safetensors", snapshot->parameters());
    paths.push_back(folder / "snapshot.safetensors");
    weights.push_back(weights_of(1));

    const auto named = make_model(tiny(), 2);
    make_directory(folder / "model");
    save_model(folder / "model", tiny(), named->parameters());
    paths.push_back(folder / "model/model.safetensors");
    weights.push_back(weights_of(2));

    for (const double ema : {0.0, 0.5}) {  // if a checkpoint has a moving average, it counts
      const auto model = make_model(tiny(), 3);
      model->parameters().allocate_gradients();
      Optimizer optimizer(model->parameters(), {.ema = ema});
      model->parameters().values().copy_from(make_model(tiny(), 4)->parameters().values());
      paths.push_back(folder / ("checkpoint-" + std::to_string(paths.size())));
      write_checkpoint(paths.back(), {}, model->parameters(), optimizer);
      weights.push_back(weights_of(ema > 0 ? 3 : 4));
    }
  }
};

TEST(MeanWeights, IsTheMeanOfEachNumber) {
  const Files files;
  const auto model = make_model(tiny(), 9);
  const std::vector<double> own = model->parameters().values().values();
  for (size_t count = 1; count <= files.paths.size(); ++count) {
    const std::vector<std::string> first(files.paths.begin(),
                                         files.paths.begin() + static_cast<std::ptrdiff_t>(count));
    const std::vector<double> mean = mean_weights(first, model->parameters()).values();
    ASSERT_EQ(mean.size(), own.size());
    for (size_t i = 0; i < mean.size(); ++i) {
      double sum = 0;
      for (size_t k = 0; k < count; ++k) sum += files.weights[k][i];
      const auto rounded = static_cast<float>(sum / static_cast<double>(count));
      ASSERT_EQ(mean[i], static_cast<double>(rounded)) << count << " files, number " << i;
    }
  }
  EXPECT_EQ(model->parameters().values().values(), own);  // the store has not changed
}

TEST(MeanWeights, RefusesOtherParameters) {
  const Files files;
  ModelConfig larger = tiny();
  transformer_of(larger).inner = 8;
  const auto model = make_model(larger, 1);
  for (const std::string& path : files.paths)
    message_of(ExitCode::model, [&] { mean_weights({path}, model->parameters()); });
}

}  // namespace
}  // namespace fovea

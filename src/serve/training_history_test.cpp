#include "serve/training_history.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "serve/served_model.h"
#include "support/network_settings.h"
#include "temporary.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

// A directory as written by 'fovea train', with a small model.
struct RunDirectory {
  RunDirectory() {
    const Vocabulary words =
        Vocabulary::from_entries(Segmentation::words, {{"the", 9}, {"dog", 8}});
    ModelConfig config;
    config.encoder_layers = config.decoder_layers = 1;
    auto& own = transformer_of(config);
    config.size = 8, own.heads = 2, own.inner = 8, config.max_length = 16;
    config.source_words = config.target_words = words.size();
    save_model(path, config, make_model(config, 1)->parameters());
    save_vocabularies(path, words, words);
    measure(5);
    keep("snapshot", 5);
  }
  void measure(int64_t update) const {
    std::ofstream(path + "/metrics.jsonl", std::ios::app)
        << R"({"kind":"train","update":)" << update << R"(,"epoch":1,"loss":2.5})" << '\n';
  }
  fs::path file(const std::string& name, int64_t update) const {
    char number[40];
    std::snprintf(number, sizeof number, "-%08d.safetensors", static_cast<int>(update));
    return fs::path(path) / (name + "s") / (name + number);
  }
  void keep(const std::string& name, int64_t update) const {
    fs::create_directories(fs::path(path) / (name + "s"));
    fs::copy_file(path + "/model.safetensors", file(name, update));
  }

  TemporaryFolder directory;
  std::string path = directory / "run";
};

TEST(TrainingRun, FollowsARunningTraining) {
  const RunDirectory run;
  const auto training = training_run({run.path, "en", "de"}, Cpu{});
  const std::string first = R"("updates":[5],"curves":{"train":{"loss":[[5,2.5]]}}})";
  EXPECT_EQ(training->json(), R"({"running":false,)" + first);
  {
    const DirectoryLock lock(run.path);
    EXPECT_EQ(training->json(), R"({"running":true,)" + first);
  }
  run.measure(10);
  run.keep("checkpoint", 10);
  fs::remove(run.file("snapshot", 5));
  EXPECT_EQ(training->json(), R"({"running":false,"updates":[10],"curves":)"
                              R"({"train":{"loss":[[5,2.5],[10,2.5]]}}})");
  EXPECT_EQ(training->after(5), nullptr) << "it was deleted";
  EXPECT_EQ(training->after(7), nullptr) << "there is no such update";
  const auto model = training->after(10);
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->package().config.size, 8);
  fs::remove(run.file("checkpoint", 10));
  EXPECT_EQ(training->after(10), model) << "the last model stays in memory";
}

TEST(TrainingRun, DamagedFilesAreErrors) {
  const RunDirectory run;
  const auto training = training_run({run.path, "en", "de"}, Cpu{});
  fs::resize_file(run.file("snapshot", 5), 100);
  EXPECT_THROW(training->after(5), Error);
  fs::remove(run.path + "/metrics.jsonl");
  EXPECT_THROW(training_run({run.path, "en", "de"}, Cpu{}), Error);
}

}  // namespace
}  // namespace fovea

#include "train/training_data.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "decode/model_bundle.h"
#include "support/network_settings.h"
#include "text_samples.h"

namespace fovea {
namespace {

using samples::Folder;

ModelConfig small_model() {
  ModelConfig model;
  model.encoder_layers = model.decoder_layers = 1;
  auto& own = transformer_of(model);
  model.size = own.inner = 8;
  own.heads = 2;
  model.source_words = model.target_words = 6;
  return model;
}

TEST(DataTest, ReportsMissingFilesFirst) {
  const Folder folder;
  folder.write("train.en", "a\n");
  folder.write("train.de", "b\n");
  folder.write("wide.de", std::string("\xFF\xFE"
                                      "b\0",
                                      4));
  TrainOptions options;
  options.data.root = folder / "";
  options.data.train_source = {"train.en"};
  options.data.train_target = {"train.de"};
  EXPECT_NO_THROW(check_files(options));

  options.data.valid_source = {"valid.en"};
  const std::string below = message_of(ExitCode::files, [&] { check_files(options); });
  EXPECT_EQ(below.find("data.valid_source: "), 0u) << below;
  EXPECT_NE(below.find("valid.en: cannot open"), below.npos) << below;
  EXPECT_NE(below.find("searched in " + (folder / "")), below.npos) << below;

  options.data.root.clear();
  const std::string here = message_of(ExitCode::files, [&] { check_files(options); });
  EXPECT_NE(here.find(std::filesystem::current_path().string()), here.npos) << here;
  EXPECT_NE(here.find("`data` DIR"), here.npos) << here;

  options.data.root = folder / "";
  options.data.valid_source = {"wide.de"};
  message_of(ExitCode::data, [&] { check_files(options); });
  options.data.valid_source = {};
  options.vocabulary.source = "vocab.spm";
  const std::string words = message_of(ExitCode::files, [&] { check_files(options); });
  EXPECT_EQ(words.find("vocabulary.source: "), 0u) << words;
}

TEST(DataTest, DoesNotReplaceAModelUnlessRequested) {
  const Folder folder;
  const std::string at = folder / "model";
  const ModelConfig model = small_model();
  EXPECT_NO_THROW(check_directory(at, model));
  std::filesystem::create_directories(at + "/checkpoints");
  EXPECT_NO_THROW(check_directory(at, model));  // a run has begun and saved nothing

  save_model(at, model, make_model(model, 1)->parameters());
  const std::string without_checkpoint =
      message_of(ExitCode::usage, [&] { check_directory(at, model); });
  EXPECT_NE(without_checkpoint.find("no checkpoint"), without_checkpoint.npos)
      << without_checkpoint;
  EXPECT_NE(without_checkpoint.find("`restart`"), without_checkpoint.npos) << without_checkpoint;

  folder.write("model/checkpoints/checkpoint-00000003.safetensors", "");
  ModelConfig now = model;
  now.dropout = 0.7;
  now.source_words = now.target_words = 0;  // not known before the vocabulary exists
  EXPECT_NO_THROW(check_directory(at, now));
  now.size = 16;
  const std::string other = message_of(ExitCode::usage, [&] { check_directory(at, now); });
  EXPECT_NE(other.find("model.size was 8, now it is 16"), other.npos) << other;
}

TEST(DataTest, ReportsUnequalFilesBeforeItLearnsAVocabulary) {
  const Folder folder;
  folder.write("text", samples::corpus(200));
  folder.write("longer", samples::corpus(200) + "one more\n");
  folder.write("even longer", samples::corpus(201) + "two more");
  TrainOptions options;
  options.data.root = folder / "";
  options.data.train_source = options.data.train_target = {"text"};
  TrainData data;
  const auto expect = [&](const std::string& text) {
    testing::internal::CaptureStderr();
    const std::string message =
        message_of(ExitCode::data, [&] { load_vocabularies(data, options, ""); });
    EXPECT_NE(message.find(text), message.npos) << message;
    EXPECT_EQ(testing::internal::GetCapturedStderr().find("learning"), std::string::npos);
  };
  options.data.train_target = {"longer"};
  expect(
      "longer has 201 lines and " + (folder / "/text") +
      " has 200, expected equal numbers; first line without partner: " + (folder / "/longer:201"));
  options.data.train_source = options.data.train_target;
  options.data.valid_source = {"text", "even longer"};
  options.data.valid_target = {"text", "text"};
  options.vocabulary.joint = false;
  expect("even longer has 202 lines and ");
}

TEST(DataTest, ReportsASmallVocabulary) {
  const Folder folder;
  folder.write("text", samples::corpus(200));
  TrainOptions options;
  options.data.root = folder / "";
  options.data.train_source = options.data.train_target = {"text"};
  TrainData data;
  testing::internal::CaptureStderr();
  load_vocabularies(data, options, "");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("8,000 pieces requested, the text allows only " +
                     std::to_string(data.source.size())),
            log.npos)
      << log;
}

}  // namespace
}  // namespace fovea

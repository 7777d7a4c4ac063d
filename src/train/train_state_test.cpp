#include "train/train_state.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/random.h"
#include "support/tiny_training.h"
#include "temporary.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

TrainState usual_state() {
  TrainState state;
  state.update = 40;
  state.epoch = 3;
  state.batch = 5;
  state.drawn = 90;
  state.loss = 2.5;
  state.nll = 2;
  state.words = 100;
  state.best = 4.5;
  state.best_update = 36;
  state.since_best = 1;
  state.epoch_ended = 33;
  state.validated = 36;
  state.skipped = 10;
  state.rollbacks = 1;
  state.rate_factor = 0.5;
  state.watch = {.mean = 2, .variance = 0.1, .seen = 40, .high = 0};
  return state;
}

TEST(TrainStateTest, ReadsBackWhatItWrites) {
  const std::string text = format_state(usual_state());
  EXPECT_EQ(format_state(parse_state(text, "file")), text);
  TrainState none = usual_state();
  none.best = std::numeric_limits<double>::infinity();
  EXPECT_EQ(*parse_state(format_state(none), "file").best, *none.best);
}

TEST(TrainStateTest, ValuesOutsideTheirRangeAreNamed) {
  const std::pair<const char*, Json> bad[] = {
      {"parts", 0},
      {"parts", -1},
      {"parts", int64_t{1} << 62},
      {"batch", -5},
      {"batch", 1'000'000'000'000},
      {"update", int64_t{1} << 62},
      {"update", std::numeric_limits<uint64_t>::max()},
      {"update", -1},
      {"epoch", -1},
      {"epoch", 91},
      {"drawn", 39},
      {"words", -1},
      {"words", std::numeric_limits<int64_t>::max()},
      {"guided_words", -1},
      {"best_update", 41},
      {"since_best", -3},
      {"epoch_ended", 41},
      {"validated", 1'000'000},
      {"skipped", 91},
      {"skipped_in_a_row", 11},
      {"rollbacks", -1},
      {"rises", 11},
      {"rate_factor", 0},
      {"rate_factor", -0.5},
      {"rate_factor", 2},
      {"loss_variance", -1},
      {"loss_seen", -1},
      {"loss_high", -1},
  };
  for (const auto& [name, value] : bad) {
    Json json = Json::parse(format_state(usual_state()));
    json[name] = value;
    const std::string said =
        message_of(ExitCode::data, [&] { parse_state(json.dump(), "dir/checkpoint"); });
    // For some fields, another field is the first that contradicts the change.
    const bool drawn = std::string(name) == "drawn";
    const std::string field = std::string("dir/checkpoint: state.") + (drawn ? "drawn" : name);
    EXPECT_NE(said.find(field + ": found "), said.npos) << name << " " << value << ": " << said;
    EXPECT_NE(said.find("allowed: "), said.npos) << said;
    if (value.is_number_unsigned() && value > uint64_t{1} << 63) {
      EXPECT_NE(said.find("found 9,223,372,036,854,775,807"), said.npos) << said;
    }
  }
}

TEST(TrainStateTest, MissingFieldsAreNamedUnlessOptional) {
  const std::set<std::string> later{"asked",     "best",      "guided",    "guided_words",
                                    "loss_high", "loss_mean", "loss_seen", "loss_variance",
                                    "parts",     "rises",     "save_waits"};
  const Json usual = Json::parse(format_state(usual_state()));
  for (const auto& [name, value] : usual.items()) {
    Json json = usual;
    json.erase(name);
    const auto parse = [&] { parse_state(json.dump(), "file"); };
    if (later.contains(name))
      EXPECT_NO_THROW(parse()) << name;
    else
      EXPECT_EQ(message_of(ExitCode::model, parse), "file: state." + name + ": missing");
  }
}

TEST(TrainStateTest, ValuesOfAnotherTypeAreNamed) {
  const Json usual = Json::parse(format_state(usual_state()));
  for (const auto& [name, before] : usual.items())
    for (const Json& value : {Json(nullptr), Json("NaN"), Json(Json::array()), Json(Json::object()),
                              before.is_boolean() ? Json(1) : Json(true)}) {
      if (name == "best" && value.is_null()) continue;
      Json json = usual;
      json[name] = value;
      const std::string said =
          message_of(ExitCode::model, [&] { parse_state(json.dump(), "file"); });
      EXPECT_EQ(said.find("file: state." + name + ": found "), 0u) << said;
    }
  for (const char* text : {"", "[]", "7", "{", "null", "{\"update\": 1e999}"})
    message_of(ExitCode::model, [&] { parse_state(text, "file"); });
}

// Any value in any field of a checkpoint gives a training or an Error, never a crash.
TEST_F(TrainerTest, NoValueInACheckpointCausesACrash) {
  options_.train.updates = 6;
  options_.valid.every = 3;
  train("a");
  const auto numbers = checkpoints("a").numbers();
  const std::string path = checkpoints("a").path(numbers.back());
  const std::string whole = read_file(path);
  const size_t begin = whole.find("{\\\"asked\\\"");
  ASSERT_NE(begin, whole.npos);
  const size_t end = whole.find("}\"", begin) + 1;
  std::string plain;
  for (const char c : whole.substr(begin, end - begin))
    if (c != '\\') plain += c;
  const Json usual = Json::parse(plain);
  int64_t refused = 0, trained = 0;
  for (const auto& [name, before] : usual.items())
    for (const Json& value :
         {Json(0), Json(-5), Json(1), Json(7), Json(1'000'000'000'000), Json(int64_t{1} << 62),
          Json(std::numeric_limits<uint64_t>::max()), Json(-1e308), Json(0.5), Json(true)}) {
      Json json = usual;
      json[name] = value;
      json["finished"] = false;
      Bigrams model(1);
      Optimizer optimizer(model.parameters(), options_.optimizer);
      try {
        fs::remove_all(root_ / "b");
        const TrainState state = parse_state(json.dump(), path);
        fs::create_directories(directory("b") + "/checkpoints");
        write_checkpoint(checkpoints("b").path(6), {state, {{"data", "1"}}}, model.parameters(),
                         optimizer);
        train("b");
        ++trained;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find(".safetensors: state."), std::string::npos)
            << error.what();
        ++refused;
      }
    }
  EXPECT_GT(refused, 100);
  EXPECT_GT(trained, 30);
}

}  // namespace
}  // namespace fovea

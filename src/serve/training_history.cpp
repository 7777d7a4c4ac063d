#include "serve/training_history.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "decode/generation_defaults.h"
#include "http/json_reply.h"
#include "ops/matmul.h"
#include "serve/served_model.h"
#include "train/checkpoint.h"
#include "train/numbered_files.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

class TrainingRun : public TrainingHistory {
 public:
  TrainingRun(const ModelSpec& spec, Device device)
      : spec_(spec), device_(device), metrics_(spec.directory + "/metrics.jsonl") {
    std::error_code error;
    check(fs::exists(spec.directory + "/metrics.jsonl", error), ExitCode::model, spec.directory,
          "/metrics.jsonl: missing; `run` needs a directory of 'fovea train'; ",
          "use `model` for other model directories");
    json();  // reports damaged files at the start
  }

  MetricsTail::News news() const override { return metrics_.read(); }

  std::vector<int64_t> updates() const override {
    std::vector<int64_t> updates;
    for (const auto& [update, path] : files()) updates.push_back(update);
    return updates;
  }

  bool running() const override { return is_locked(spec_.directory); }

  std::shared_ptr<const ServedModel> after(int64_t update) const override {
    if (last_ && last_update_ == update) return last_;
    const auto found = files();
    const auto file = found.find(update);
    if (file == found.end()) return nullptr;
    last_ = nullptr;  // frees its memory first: at most one model is loaded
    try {
      last_ = read(file->second);
    } catch (const Error&) {
      std::error_code error;
      if (fs::exists(file->second, error)) throw;
      return nullptr;  // the run has just deleted it
    }
    last_update_ = update;
    return last_;
  }

 private:
  // Returns the file of each saved update. Prefers snapshots: they contain only the weights and are
  // faster to read than checkpoints.
  std::map<int64_t, std::string> files() const {
    std::map<int64_t, std::string> files;
    for (const char* name : {"snapshot", "checkpoint"}) {
      const FileSeries series(spec_.directory + "/" + name + "s", name);
      for (const int64_t number : series.numbers()) files.emplace(number, series.path(number));
    }
    return files;
  }

  std::shared_ptr<const ServedModel> read(const std::string& file) const {
    const ModelConfig config = load_config(spec_.directory);
    VocabularyPair words = load_vocabularies(spec_.directory);
    auto model = make_model(config, 1, ElementType::f32, device_);
    model->set_frame(sentence_frame(config.generation, words.source, words.target));
    const ParameterStore& store = model->parameters();
    store.values().copy_from(mean_weights({file}, store));
    parameters_changed();
    ModelBundle package{spec_.directory, config, std::move(model), std::move(words.source),
                        std::move(words.target)};
    return std::make_shared<ServedModel>("", spec_.source, spec_.target, std::move(package));
  }

  ModelSpec spec_;
  Device device_;
  mutable MetricsTail metrics_;
  mutable std::shared_ptr<const ServedModel> last_;  // the model that after() returned last
  mutable int64_t last_update_ = 0;
};

}  // namespace

// The metrics by kind and name, as pairs [update, value].
struct TrainingHistory::Curves {
  Json all = Json::object();
  std::string text = "{}";
};

std::string TrainingHistory::json() const {
  if (!curves_) curves_ = std::make_shared<Curves>();
  const bool more = running();  // called first, so that the answer about an ended run is complete
  const MetricsTail::News added = news();
  if (added.replaced) curves_->all = Json::object();
  for (const MetricsLine& line : added.lines)
    for (const auto& [name, value] : line.values)
      if (std::isfinite(value)) curves_->all[line.kind][name].push_back({line.update, value});
  if (added.replaced || !added.lines.empty()) curves_->text = json_text(curves_->all);
  return fmt::format(R"({{"running":{},"updates":{},"curves":{}}})", more, Json(updates()).dump(),
                     curves_->text);
}

std::shared_ptr<const TrainingHistory> training_run(const ModelSpec& spec, Device device) {
  return std::make_shared<TrainingRun>(spec, device);
}

}  // namespace fovea

#include "cli/training_run.h"

#include <filesystem>
#include <map>

#include "ops/matmul.h"
#include "train/average.h"
#include "train/metrics.h"
#include "train/series.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

class TrainingRun : public Training {
 public:
  TrainingRun(const EngineSpec& spec, Device device) : spec_(spec), device_(device) {
    const std::string metrics = (fs::path(spec.directory) / "metrics.jsonl").string();
    std::error_code error;
    check(fs::exists(metrics, error), Exit::model, metrics, ": missing; --run takes a directory ",
          "that 'fovea train' wrote, -m one of any model");
    for (const Metrics& line : read_metrics(metrics)) {
      lines_.push_back({line.kind, line.update, {}});
      for (const Metric& metric : line.values)
        lines_.back().values.emplace_back(metric.name, metric.value);
    }
    // A snapshot has the weights alone, and is read sooner than a checkpoint of the same update.
    for (const char* name : {"snapshot", "checkpoint"}) {
      const FileSeries series(spec.directory + "/" + name + "s", name);
      for (const int64_t number : series.numbers()) files_.emplace(number, series.path(number));
    }
    for (const auto& [update, path] : files_) updates_.push_back(update);
  }

  const std::vector<TrainingLine>& lines() const override { return lines_; }
  const std::vector<int64_t>& updates() const override { return updates_; }

  std::shared_ptr<const Engine> after(int64_t update) const override {
    if (last_ && last_update_ == update) return last_;
    last_ = nullptr;  // its memory first: there is never more than one of them
    const ModelConfig config = load_config(spec_.directory);
    Vocabularies words = load_vocabularies(spec_.directory);
    auto model = make_model(config, 1, Type::f32, device_);
    const ParameterStore& store = model->parameters();
    store.values().copy_from(mean_weights({files_.at(update)}, store));
    parameters_changed();
    Package package{spec_.directory, config, std::move(model), std::move(words.source),
                    std::move(words.target)};
    last_ = std::make_shared<Engine>("", spec_.source, spec_.target, std::move(package));
    last_update_ = update;
    return last_;
  }

 private:
  EngineSpec spec_;
  Device device_;
  std::vector<TrainingLine> lines_;
  std::map<int64_t, std::string> files_;
  std::vector<int64_t> updates_;
  mutable std::shared_ptr<const Engine> last_;  // that was asked for
  mutable int64_t last_update_ = 0;
};

}  // namespace

std::shared_ptr<const Training> training_run(const EngineSpec& spec, Device device) {
  return std::make_shared<TrainingRun>(spec, device);
}

}  // namespace fovea

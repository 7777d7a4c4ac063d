#include "cli/training_run.h"

#include <filesystem>
#include <map>

#include "base/files.h"
#include "ops/matmul.h"
#include "train/average.h"
#include "train/metrics.h"
#include "train/series.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

class TrainingRun : public Training {
 public:
  TrainingRun(const EngineSpec& spec, Device device)
      : spec_(spec), device_(device), metrics_(spec.directory + "/metrics.jsonl") {
    std::error_code error;
    check(fs::exists(spec.directory + "/metrics.jsonl", error), Exit::model, spec.directory,
          "/metrics.jsonl: missing; --run takes a directory that 'fovea train' wrote, ",
          "-m one of any model");
    told();  // what is damaged is known before anybody asks
  }

  News news() const override {
    const MetricsTail::News read = metrics_.read();
    News news{.anew = read.anew};
    for (const Metrics& line : read.lines) {
      news.lines.push_back({line.kind, line.update, {}});
      for (const Metric& metric : line.values)
        news.lines.back().values.emplace_back(metric.name, metric.value);
    }
    return news;
  }

  std::vector<int64_t> updates() const override {
    std::vector<int64_t> updates;
    for (const auto& [update, path] : files()) updates.push_back(update);
    return updates;
  }

  bool running() const override { return is_locked(spec_.directory); }

  std::shared_ptr<const Engine> after(int64_t update) const override {
    if (last_ && last_update_ == update) return last_;
    const auto found = files();
    const auto file = found.find(update);
    if (file == found.end()) return nullptr;
    last_ = nullptr;  // its memory first: there is never more than one of them
    try {
      last_ = read(file->second);
    } catch (const Error&) {
      std::error_code error;
      if (fs::exists(file->second, error)) throw;
      return nullptr;  // the run deleted it in this moment
    }
    last_update_ = update;
    return last_;
  }

 private:
  // A snapshot has the weights alone, and is read sooner than a checkpoint of the same update.
  std::map<int64_t, std::string> files() const {
    std::map<int64_t, std::string> files;
    for (const char* name : {"snapshot", "checkpoint"}) {
      const FileSeries series(spec_.directory + "/" + name + "s", name);
      for (const int64_t number : series.numbers()) files.emplace(number, series.path(number));
    }
    return files;
  }

  std::shared_ptr<const Engine> read(const std::string& file) const {
    const ModelConfig config = load_config(spec_.directory);
    Vocabularies words = load_vocabularies(spec_.directory);
    auto model = make_model(config, 1, Type::f32, device_);
    const ParameterStore& store = model->parameters();
    store.values().copy_from(mean_weights({file}, store));
    parameters_changed();
    Package package{spec_.directory, config, std::move(model), std::move(words.source),
                    std::move(words.target)};
    return std::make_shared<Engine>("", spec_.source, spec_.target, std::move(package));
  }

  EngineSpec spec_;
  Device device_;
  mutable MetricsTail metrics_;
  mutable std::shared_ptr<const Engine> last_;  // that was asked for
  mutable int64_t last_update_ = 0;
};

}  // namespace

std::shared_ptr<const Training> training_run(const EngineSpec& spec, Device device) {
  return std::make_shared<TrainingRun>(spec, device);
}

}  // namespace fovea

#include "train/run.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "base/signals.h"
#include "decode/package.h"
#include "decode/translate.h"
#include "train/budget.h"
#include "train/doubts.h"
#include "train/pretrained.h"

namespace fovea {
namespace {

std::vector<std::pair<std::string, std::string>> values_of(const std::string& recipe) {
  TrainOptions options;
  Settings settings;
  options.describe(settings);
  settings.read_text(recipe, "recipe.yml", Exit::data);
  return settings.values();
}

// Writes the settings down once it is clear that the run goes on with them, and says which of them
// the run did not begin with.
class RecipeWriter : public TrainObserver {
 public:
  RecipeWriter(std::string path, std::string settings)
      : path_(std::move(path)), settings_(std::move(settings)) {}
  void began(const TrainState& state) override {
    if (state.update > 0 && std::filesystem::exists(path_)) tell_changes();
    write_atomically(path_, settings_);
  }

 private:
  void tell_changes() const try {
    const auto before = values_of(read_file(path_));
    for (const auto& [path, value] : values_of(settings_)) {
      const auto was = std::ranges::find(before, path, &std::pair<std::string, std::string>::first);
      if (was != before.end() && was->second != value)
        log_warning("{} was {}, from here on it is {}", path, was->second, value);
    }
  } catch (const Error& error) {  // of another version, perhaps
    log_warning("what has changed since the run began is not known: {}", error.what());
  }

  std::string path_, settings_;
};

// Beam and length penalty are those of `valid`; leaves off where the program is asked to stop.
TranslateLines translator(const TrainData& data, const ValidOptions& valid) {
  TranslateOptions how;
  how.search.beam = valid.beam;
  how.search.length_penalty = valid.length_penalty;
  how.warn = false;
  how.progress = [](int64_t) { return !stop_requested(); };
  return [how, source = data.source, target = data.target](const Model& model, const Lines& sources,
                                                           int64_t most) {
    TranslateOptions here = how;
    here.batch_tokens = std::min(how.batch_tokens, most);
    Lines lines;
    for (Translation& t : Translator({&model}, source, target, here).translate(sources))
      lines.push_back(std::move(t.text));
    return lines;
  };
}

}  // namespace

RunEnd train_model(const Run& run, const TrainData& data, const HeldOut& test) {
  const std::string& directory = run.directory;
  const bool fresh = FileSeries(directory + "/checkpoints", "checkpoint").numbers().empty();
  TrainOptions options = run.options;
  std::string settings = run.settings;
  if (options.batch.tokens == kAutomaticTokens) {
    options.batch.tokens = batch_tokens(options, data.train, directory, run.device);
    settings = with_batch_tokens(settings, options.batch.tokens);
  }
  if (fresh) save_vocabularies(directory, data.source, data.target);
  const auto model = make_model(options.model, options.train.seed, Type::f32, run.device);
  model->parameters().allocate_gradients();
  log_info("{} parameters", with_commas(model->parameters().size()));
  const std::string doubt = doubt_of_size(model->parameters().size(), data.train);
  if (!doubt.empty()) log_warning("{}", doubt);
  const VectorOptions& vectors = options.vectors;
  FirstVectors first;  // a run that goes on must still know which rows are frozen
  if (vectors.given() && (fresh || vectors.frozen))
    first = take_vectors(options, data.source, data.target, model->parameters());
  Identity identity = identity_of(options, data);
  identity.insert(identity.end(), first.identity.begin(), first.identity.end());
  const std::string weights = directory + "/" + kWeightsFile;
  TrainTask task{
      .options = options,
      .model = *model,
      .text = data.train,
      .valid = data.valid,
      .test = test,
      .directory = directory,
      .identity = identity,
      .frozen = std::move(first.frozen),
      .translate = translator(data, options.valid),
      .write_model = [&] { save_model(directory, options.model, model->parameters()); },
      .read_model = [&] { load_parameters(SafetensorsFile::open(weights), model->parameters()); },
      .save_requested = run.save_requested,
  };
  Observers observers;
  observers.push_back(std::make_unique<RecipeWriter>(directory + "/recipe.yml", settings));
  observers.push_back(console_observer(options.train.label_smoothing));
  observers.push_back(metrics_observer(directory));
  observers.push_back(tensorboard_observer(directory));
  Trainer trainer(std::move(task), std::move(observers));
  const RunOutcome outcome = trainer.run();
  return {outcome, trainer.state().update, model->parameters().size(), std::move(identity)};
}

std::optional<RunEnd> past_end(const Run& run, const TrainData& data) {
  const auto note = newest_note(FileSeries(run.directory + "/checkpoints", "checkpoint"));
  if (!note || !note->state.finished || !at_the_end(run.options, note->state)) return {};
  Identity identity = identity_of(run.options, data);
  const Identity vectors = identity_of_vectors(run.options, data.source, data.target);
  identity.insert(identity.end(), vectors.begin(), vectors.end());
  if (!difference(note->identity, identity).empty()) return {};
  return RunEnd{RunOutcome::finished, note->state.update, 0, std::move(identity)};
}

}  // namespace fovea

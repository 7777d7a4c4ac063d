#include "train/train_model.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "base/signals.h"
#include "decode/model_bundle.h"
#include "decode/translator.h"
#include "models/stored_weights.h"
#include "ops/matmul.h"
#include "train/auto_batch_size.h"
#include "train/data_warnings.h"
#include "train/initial_weights.h"
#include "train/pretrained.h"

namespace fovea {
namespace {

std::vector<std::pair<std::string, std::string>> values_of(const std::string& recipe) {
  TrainOptions options;
  Settings settings(options);
  settings.read_text(recipe, "recipe.yml", ExitCode::data);
  return settings.values();
}

// An observer that writes the settings and the vocabularies when the first update begins. Before
// that, the run may still fail or be refused. Logs the settings that have changed since the run
// first started.
class RecipeWriter : public TrainObserver {
 public:
  RecipeWriter(std::string path, std::string settings, std::function<void()> write_vocabularies)
      : path_(std::move(path)), settings_(std::move(settings)),
        write_vocabularies_(std::move(write_vocabularies)) {}
  void began(const TrainState& state) override {
    if (state.update > 0 && std::filesystem::exists(path_)) log_changes();
    write_vocabularies_();
    write_atomically(path_, settings_);
  }

 private:
  void log_changes() const try {
    const auto before = values_of(read_file(path_));
    for (const auto& [path, value] : values_of(settings_)) {
      const auto was = std::ranges::find(before, path, &std::pair<std::string, std::string>::first);
      if (was != before.end() && was->second != value)
        log_warning("{} was {}, from now on it is {}", path, was->second, value);
    }
  } catch (const Error& error) {  // for example a file of another version
    log_warning("cannot compare the settings with those of the earlier run: {}", error.what());
  }

  std::string path_, settings_;
  std::function<void()> write_vocabularies_;
};

// Returns a function that translates with the beam and the length penalty of `valid`. It stops
// early if a signal asks the program to stop.
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

void start_from(const std::string& directory, const TrainData& data, Model& model) {
  const CopiedWeights copied = copy_weights(directory, data, model.parameters());
  log_info("train.from: weights of {}; embedding rows: {} copied, {} new", directory,
           with_commas(copied.pieces), with_commas(copied.new_pieces));
}

// The model of a run before its first update.
struct PreparedRun {
  std::unique_ptr<Model> model;
  FirstVectors first;
};

PreparedRun prepare(const TrainingRun& run, const TrainOptions& options, const TrainData& data,
                    bool fresh) {
  PreparedRun made;
  made.model = make_model(options.model, options.train.seed, ElementType::f32, run.device);
  made.model->parameters().allocate_gradients();
  if (fresh && !options.train.from.empty()) start_from(options.train.from, data, *made.model);
  const VectorOptions& vectors = options.vectors;
  // A resumed run needs the vectors again to freeze the same rows.
  if (vectors.given() && (fresh || vectors.frozen))
    made.first = take_vectors(options, data.source, data.target, made.model->parameters());
  return made;
}

// Makes the first update of a new run as a trial. Throws if memory is short or if the loss is not
// finite. Afterwards the weights are the same as before.
void try_first_update(const TrainOptions& options, const TrainData& data, const PreparedRun& made) {
  log_info("trying the first update before removing the earlier run");
  const ParameterStore& store = made.model->parameters();
  const Tensor before = Tensor::like(store.values());
  before.copy_from(store.values());
  const PrecisionScope precision(options.train.precision);
  Optimizer optimizer(made.model->parameters(), options.optimizer);
  optimizer.freeze(made.first.frozen);
  UpdateExecutor executor(*made.model, optimizer, data.train, options);
  BatchStream stream(data.train, options.batch, 0, 0);
  const std::vector<PairBatch> batches = stream.take(options.train.accumulate);
  const double rate = learning_rate(options.schedule, 1, options.model.size);
  TrainState state;
  const std::string fault = find_fault(executor.update(batches, rate, state), store);
  check(fault.empty(), ExitCode::diverged, "the first update failed: ", fault,
        " (sentences of lines ", first_lines(batches), ")");
  store.values().copy_from(before);
  parameters_changed();
}

}  // namespace

RunEnd train_model(const TrainingRun& run, const TrainData& data, const HeldOut& test) {
  const std::string& directory = run.directory;
  TrainOptions options = run.options;
  std::string settings = run.settings;
  if (options.batch.tokens == kAutomaticTokens) {
    options.batch.tokens = run.remove_earlier
                               ? token_budget(options, data.train, run.device)
                               : batch_tokens(options, data.train, directory, run.device);
    settings = with_batch_tokens(settings, options.batch.tokens);
  }
  const bool fresh =
      run.remove_earlier || FileSeries(directory + "/checkpoints", "checkpoint").numbers().empty();
  PreparedRun made = prepare(run, options, data, fresh);
  Model& model = *made.model;
  log_info("{} parameters", with_commas(model.parameters().size()));
  const std::string doubt = warning_about_size(model.parameters().size(), data.train);
  if (!doubt.empty()) log_warning("{}", doubt);
  if (run.remove_earlier) {
    try_first_update(options, data, made);
    run.remove_earlier();
  }
  RunIdentity identity = identity_of(options, data);
  identity.insert(identity.end(), made.first.identity.begin(), made.first.identity.end());
  const std::string weights = directory + "/" + kWeightsFile;
  TrainTask task{
      .options = options,
      .model = model,
      .text = data.train,
      .valid = data.valid,
      .test = test,
      .directory = directory,
      .identity = identity,
      .resume = run.resume,
      .frozen = std::move(made.first.frozen),
      .translate = translator(data, options.valid),
      .write_model = [&] { save_model(directory, options.model, model.parameters()); },
      .read_model = [&] { load_parameters(SafetensorsFile::open(weights), model.parameters()); },
      .save_requested = run.save_requested,
  };
  const auto write_vocabularies = [&] {
    if (fresh || run.resume == ResumeMode::changed)
      save_vocabularies(directory, data.source, data.target);
  };
  Observers observers;
  observers.push_back(
      std::make_unique<RecipeWriter>(directory + "/recipe.yml", settings, write_vocabularies));
  observers.push_back(console_observer(options.train.label_smoothing));
  observers.push_back(metrics_observer(directory));
  observers.push_back(tensorboard_observer(directory));
  Trainer trainer(std::move(task), std::move(observers));
  const RunOutcome outcome = trainer.run();
  return {outcome, trainer.state().update, model.parameters().size(), std::move(identity)};
}

std::optional<RunEnd> past_end(const TrainingRun& run, const TrainData& data) {
  const FileSeries checkpoints(run.directory + "/checkpoints", "checkpoint");
  const std::vector<int64_t> updates = checkpoints.numbers();
  if (updates.empty()) return {};
  const auto note = note_of(checkpoints.path(updates.back()));
  if (!note || !note->state.finished || !at_the_end(run.options, note->state)) return {};
  RunIdentity identity = identity_of(run.options, data);
  const RunIdentity vectors = identity_of_vectors(run.options, data.source, data.target);
  identity.insert(identity.end(), vectors.begin(), vectors.end());
  if (!difference(note->identity, identity).empty()) return {};
  return RunEnd{RunOutcome::finished, note->state.update, 0, std::move(identity)};
}

}  // namespace fovea

#include "train/train_model.h"

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "base/signals.h"
#include "decode/generation_defaults.h"
#include "decode/model_bundle.h"
#include "decode/translator.h"
#include "models/adapter_directory.h"
#include "models/stored_weights.h"
#include "ops/matmul.h"
#include "train/auto_batch_size.h"
#include "train/data_warnings.h"
#include "train/initial_weights.h"
#include "train/parameter_selection.h"
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

// Returns a function that translates with the beam and the length penalty of `valid`, and with the
// other settings of the model. It stops early if a signal asks the program to stop.
TranslateLines translator(const TrainData& data, const TrainOptions& options) {
  const ValidOptions& valid = options.valid;
  TranslateOptions how;
  how.search = search_defaults(options.model.generation, data.target);
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
  log_info("train.from: weights of {}; embedding rows: {} copied, {} means of others, {} new",
           directory, with_commas(copied.pieces), with_commas(copied.means),
           with_commas(copied.new_pieces));
}

// The model of a run before its first update.
struct PreparedRun {
  std::unique_ptr<Model> model;
  std::unique_ptr<LowRankAdapter> adapter;  // absent unless train.lora.rank is given
  double dropout = 0;                       // of the adapter
  FirstVectors first;                       // with all frozen values

  TrainedWeights weights() const {
    return adapter ? TrainedWeights(*model, *adapter, dropout) : TrainedWeights(*model);
  }
};

// The parameters that an adapter changes: matrices only.
std::vector<bool> adapted(const ParameterStore& store, const LoraOptions& lora) {
  std::vector<std::string> patterns = lora.targets;
  if (patterns.empty()) {
    for (const char* part : {"*attend*/*", "*feed_forward/*", "*ssru/*"})
      if (std::ranges::any_of(store.all(),
                              [&](const auto& p) { return fits_pattern(p.name, part); }))
        patterns.emplace_back(part);
    check(!patterns.empty(), ExitCode::data, "train.lora.targets: the model has no attention and ",
          "no feed-forward layers; name the matrices to adapt");
  }
  std::vector<bool> chosen = select_parameters(store, patterns, "train.lora.targets");
  for (size_t i = 0; i < chosen.size(); ++i)
    chosen[i] = chosen[i] && store.all()[i].tensor.rank() == 2;
  check(std::ranges::find(chosen, true) != chosen.end(), ExitCode::data,
        "train.lora.targets: the patterns fit no matrix, only vectors; name matrices");
  return chosen;
}

void add_adapter(PreparedRun& made, const TrainOptions& options) {
  ParameterStore& store = made.model->parameters();
  const std::vector<bool> chosen = adapted(store, options.train.lora);
  std::vector<std::string> targets;
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) targets.push_back(store.all()[i].name);
  store.allocate_gradients([&](const auto& p) { return chosen[&p - store.all().data()]; });
  made.dropout = options.train.lora.dropout;
  made.adapter = std::make_unique<LowRankAdapter>(store, targets, options.train.lora.size());
  made.adapter->parameters().allocate(options.train.seed);
  made.adapter->parameters().allocate_gradients();
  made.adapter->keep_base();
}

void allocate_gradients(PreparedRun& made, const std::vector<std::string>& freeze) {
  ParameterStore& store = made.model->parameters();
  const std::vector<bool> frozen = select_parameters(store, freeze, "train.freeze");
  check(std::ranges::find(frozen, false) != frozen.end(), ExitCode::data,
        "train.freeze: the patterns fit all parameters, so nothing is left to train; name fewer");
  store.allocate_gradients([&](const auto& p) { return !frozen[&p - store.all().data()]; });
  made.first.frozen = ranges_of(store, frozen);
}

PreparedRun prepare(const TrainingRun& run, const TrainOptions& options, const TrainData& data,
                    bool fresh) {
  PreparedRun made;
  made.model = make_model(options.model, options.train.seed, ElementType::f32, run.device);
  made.model->set_frame(data.train.frame());
  const bool adapts = options.train.lora.rank > 0;
  if ((fresh || adapts) && !options.train.from.empty())
    start_from(options.train.from, data, *made.model);
  adapts ? add_adapter(made, options) : allocate_gradients(made, options.train.freeze);
  const VectorOptions& vectors = options.vectors;
  // A resumed run needs the vectors again to freeze the same rows.
  if (vectors.given() && (fresh || vectors.frozen)) {
    FirstVectors first = take_vectors(options, data.source, data.target, made.model->parameters());
    made.first.identity = std::move(first.identity);
    made.first.frozen.insert(made.first.frozen.end(), first.frozen.begin(), first.frozen.end());
  }
  return made;
}

// Makes the first update of a new run as a trial. Throws if memory is short or if the loss is not
// finite. Afterwards the weights are the same as before.
void try_first_update(const TrainOptions& options, const TrainData& data, const PreparedRun& made) {
  log_info("trying the first update before removing the earlier run");
  const TrainedWeights weights = made.weights();
  ParameterStore& store = weights.store();
  const Tensor before = Tensor::like(store.values());
  before.copy_from(store.values());
  const PrecisionScope precision(options.train.precision);
  Optimizer optimizer(store, options.optimizer);
  optimizer.freeze(made.first.frozen);
  UpdateExecutor executor(weights, optimizer, data.train, options);
  BatchStream stream(data.train, options.batch, 0, 0);
  const std::vector<PairBatch> batches = stream.take(options.train.accumulate);
  const double rate = learning_rate(options.schedule, 1, options.model.size);
  TrainState state;
  const std::string fault = find_fault(executor.update(batches, rate, state), store);
  check(fault.empty(), ExitCode::diverged, "the first update failed: ", fault,
        " (sentences of lines ", first_lines(batches), ")");
  store.values().copy_from(before);
  weights.changed();
}

void log_parameters(const PreparedRun& made) {
  const int64_t all = made.model->parameters().size();
  int64_t trained = made.weights().store().size();
  for (const StoreRange& range : made.first.frozen) trained -= range.size;
  if (trained == all) return log_info("{} parameters", with_commas(all));
  log_info("{} parameters; training changes {} ({:.2f} %)", with_commas(all), with_commas(trained),
           100.0 * static_cast<double>(trained) / static_cast<double>(all));
}

// Functions that write and read the trained weights: those of the model, or of the adapter.
struct WeightFiles {
  std::function<void()> write, read, write_vocabularies;
};

WeightFiles files_of(const TrainingRun& run, const TrainOptions& options, const TrainData& data,
                     const PreparedRun& made) {
  const std::string& directory = run.directory;
  if (const LowRankAdapter* adapter = made.adapter.get()) {
    const AdapterConfig config = adapter_of(options.train.from, options.train.lora.size());
    return {.write = [=, &directory] { save_adapter(directory, config, *adapter); },
            .read = [=, &directory] { load_adapter(directory, *adapter); },
            .write_vocabularies = [] {}};
  }
  const ParameterStore& store = made.model->parameters();
  return {
      .write = [&] { save_model(directory, options.model, store); },
      .read =
          [&] { load_parameters(SafetensorsFile::open(directory + "/" + kWeightsFile), store); },
      .write_vocabularies = [&] { save_vocabularies(directory, data.source, data.target); }};
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
  log_parameters(made);
  if (options.train.from.empty())
    if (const auto doubt = warning_about_size(model.parameters().size(), data.train);
        !doubt.empty())
      log_warning("{}", doubt);
  if (run.remove_earlier) {
    try_first_update(options, data, made);
    run.remove_earlier();
  }
  RunIdentity identity = identity_of(options, data);
  identity.insert(identity.end(), made.first.identity.begin(), made.first.identity.end());
  const WeightFiles files = files_of(run, options, data, made);
  TrainTask task{
      .options = options,
      .weights = made.weights(),
      .text = data.train,
      .valid = data.valid,
      .test = test,
      .directory = directory,
      .identity = identity,
      .resume = run.resume,
      .frozen = std::move(made.first.frozen),
      .translate = translator(data, options),
      .write_model = files.write,
      .read_model = files.read,
      .save_requested = run.save_requested,
  };
  const auto write_vocabularies = [&] {
    if (fresh || run.resume == ResumeMode::changed) files.write_vocabularies();
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

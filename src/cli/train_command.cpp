#include <fmt/format.h>
#include <omp.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/signals.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/train_report.h"
#include "tensor/workspace.h"
#include "train/auto_batch_size.h"
#include "train/cost_estimate.h"
#include "train/data_warnings.h"
#include "train/model_card.h"
#include "train/pretrained.h"
#include "train/recipe_reader.h"
#include "train/train_model.h"
#include "train/training_data.h"
#include "train/unused_settings.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  Train the published Multi30k model; data below /data:
    fovea train -c recipes/multi30k-en-de-tiny.yml -o tiny --data /data

  Check the files, and measure parameters, memory and time with a few updates:
    fovea train -c recipes/multi30k-en-de-tiny.yml -o tiny --data /data --dry-run

  Another size, in bf16:
    fovea train -c recipe.yml -o model --set model.size=256 --set model.heads=8 --precision bf16

  A model that labels texts, or answers questions about them (then: fovea classify):
    fovea train -c recipes/trec.yml -o trec --data /data
    fovea train -c recipes/babi1.yml -o babi1 --data /data

  Embeddings from word vectors (word2vec, GloVe, fastText) that training does not change:
    fovea train -c recipes/sst2.yml -o sst2 --data /data --set model.embedding=300 \
      --set vectors.source=glove.6B.300d.txt --set vectors.frozen=true

  One attention head learns word alignments made by another program (then: fovea align):
    fovea train -c recipe.yml -o model --set data.alignments=train.links

  Fine-tuning: start from a model, with its network and vocabulary; then the same as an adapter:
    fovea train -c recipes/fine-tune/full.yml -o tuned --data /data --set train.from=model
    fovea train -c recipes/fine-tune/adapter.yml -o adapter --data /data --set train.from=model
    fovea translate -m model --adapter adapter "A sentence."

  The largest batches that fit in 8 GiB of memory; the log shows their size:
    fovea train -c recipe.yml -o model --device cuda --workspace 8 --set batch.tokens=auto

  All settings with their meaning, as a recipe:
    fovea train --dump-config

Paths of a recipe and of --set: absolute paths are used as they are. Relative ones start at
--data DIR. Without --data, Fovea looks for the training text below $FOVEA_DATA, then below the
current folder, then below the recipe's own folder, and uses the first that has it. data.root, if it
is relative, is a folder below that.

The same command resumes a stopped or killed run. The result is the same bit for bit, unless memory
ran short. Ctrl-C and SIGTERM save and stop; SIGUSR1 saves and continues. A run resumes only with
the same text, vocabulary, model, batches and seed. --resume-anyway accepts all changes except
those of the model; the result then differs from that of an uninterrupted run. Changes of the
optimiser, the schedule, precision, dropout, label smoothing and validation never prevent resuming:
they are logged and take effect at once. --restart starts over and replaces the earlier model after
the first successful update.

Training ends after train.updates updates, or after valid.patience validations in a row without a
new best. The default of 20,000 updates reads a million short sentence pairs about seven times. That
takes hours on a few cores; the bundled models had 16,000 larger updates on a GPU.

MODEL_DIR then holds model.safetensors (the best by valid.stop_metric, or the average of the last
validations), config.yml, the vocabulary, README.md (training data and results), recipe.yml (all
settings), metrics.jsonl, tensorboard/, checkpoints/ and snapshots/ (both only needed to resume or
to average).)";

struct TrainCommand {
  std::string recipe, directory, data, precision, device = "cpu";
  std::vector<std::string> assignments;
  bool dump_config = false, dry_run = false, restart = false, resume_anyway = false;
  double workspace = 0;  // GiB; 0: no limit
};

Device device_of(const TrainCommand& command) {
  const Device device = device_named(command.device);
  limit_memory(device, static_cast<size_t>(command.workspace * 0x1p30));
  return device;
}

std::atomic<bool> save_requested{false};

TrainOptions read_options(const TrainCommand& command, std::string* dump) {
  const auto assign = [&](Settings& settings) {
    for (const char* key : {"base", "compare", "variants"})
      settings.foreign(key,
                       "only 'fovea compare -c FILE' accepts this key; it trains each variant");
    if (!command.recipe.empty()) settings.read_file(command.recipe, ExitCode::data);
    if (!command.precision.empty()) settings.set("train.precision=" + command.precision);
    for (const std::string& assignment : command.assignments) settings.set(assignment);
  };
  TrainOptions options = read_recipe(assign, ExitCode::data);
  options.data.start_at(command.data, command.recipe);
  if (!command.dump_config) options.complete(ExitCode::data);
  if (options.train.updates > 0 && options.schedule.warmup >= options.train.updates)
    log_warning(
        "schedule.warmup: the learning rate rises for {} updates, but the run has only {}, so the "
        "model will learn little; lower schedule.warmup or raise train.updates",
        with_commas(options.schedule.warmup), with_commas(options.train.updates));
  for (const std::string& unused : unused_settings(options)) log_warning("{}", unused);
  if (!command.dump_config && !options.validates())
    log_warning(
        "no validation text: training cannot stop early, and the model of the last update is kept "
        "whatever its quality; set {}",
        options.data.labelled() ? "data.valid or data.hold_out"
                                : "data.valid_source and data.valid_target");
  *dump = Settings(options).dump();
  return options;
}

// Removes an earlier run. Removes the files of its model last, so that an interruption before
// leaves a model that works.
void remove_old_run(const std::string& directory) {
  std::error_code error;
  for (const char* name : {"checkpoints", "snapshots", "tensorboard", "metrics.jsonl", "recipe.yml",
                           "model.safetensors", "adapter.safetensors", "config.yml", "vocab.spm",
                           "vocab.txt", "source.spm", "source.txt", "target.spm", "target.txt"})
    if (std::filesystem::remove_all(directory + "/" + name, error); error)
      fail(ExitCode::files, directory, "/", name, ": cannot be removed: ", error.message());
}

bool holds_run(const std::string& directory) {
  std::error_code error;
  return std::filesystem::exists(directory + "/checkpoints", error) ||
         std::filesystem::exists(directory + "/model.safetensors", error) ||
         std::filesystem::exists(directory + "/adapter.safetensors", error);
}

void warn_unless_empty(const std::string& warning) {
  if (!warning.empty()) log_warning("{}", warning);
}

void report_text(const char* name, const Corpus& text) {
  if (text.size() == 0) return;
  log_info("{}: {}; {} source and {} target pieces", name, text.counts().summary(),
           with_commas(text.source_tokens()), with_commas(text.target_tokens()));
  if (const std::string removed = text.counts().removed(); !removed.empty())
    log_warning("{}: {}", name, removed);
}

void load_all(TrainData& data, TrainOptions& options, const std::string& vocabulary_directory) {
  load_vocabularies(data, options, vocabulary_directory);
  load_text(data, options);
  fit_model(options.model, data);
  report_text("train", data.train);
  report_text("valid", data.valid.corpus);
  report_text("test", data.test.corpus);
  log_info("vocabulary: {} source and {} target entries", with_commas(data.source.size()),
           with_commas(data.target.size()));
}

// Prints the estimates of --dry-run. With --restart or without -o, they are those of a new run.
void dry_run(TrainOptions options, const TrainCommand& command) {
  const bool fresh = command.restart || command.directory.empty();
  if (!fresh) check_directory(command.directory, options.model);
  TrainData data;
  load_all(data, options, fresh ? "" : command.directory);
  const Device device = device_of(command);
  if (options.batch.tokens == kAutomaticTokens)
    options.batch.tokens = fresh ? token_budget(options, data.train, device)
                                 : batch_tokens(options, data.train, command.directory, device);
  log_info("creating the model");
  const auto model = make_model(options.model, options.train.seed, ElementType::f32, device);
  model->parameters().allocate_gradients();
  if (options.train.from.empty())
    warn_unless_empty(warning_about_size(model->parameters().size(), data.train));
  if (options.vectors.given()) take_vectors(options, data.source, data.target, model->parameters());
  const CostEstimate found = estimate(*model, data.train, options);
  fmt::print("{}{}", estimate_text(found, options), ways_to_shorten(found, options, device));
}

std::vector<MetricsLine> read_log(const std::string& directory) {
  try {
    return read_metrics(directory + "/metrics.jsonl");
  } catch (const Error&) {
    return {};  // without the figures of the run, the summary is shorter
  }
}

// Writes the model card, and logs the directory and the quality of the model.
void conclude(const TrainOptions& options, const TrainData& data, const std::string& directory,
              int64_t parameters, double seconds) {
  const TrainingFigures figures = figures_of(read_log(directory), options.valid.stop_metric);
  const std::filesystem::path folder = std::filesystem::absolute(directory).lexically_normal();
  const std::string name = (folder / "").parent_path().filename().string();
  const auto usage = [&, sentence = example_sentence(data)](const std::string& model) {
    if (options.train.lora.rank > 0) return usage_of_adapter(options.train.from, model, sentence);
    return usage_of_model(model, options.data.task, sentence);
  };
  write_card(directory, card_text({name, options, data, parameters, figures, usage("MODEL_DIR")}));
  const std::string results = summary_of(figures, options.valid.stop_metric);
  const std::string commands = usage(directory);
  log_info("model in {}{} (took {}); try: {}", directory, results.empty() ? "" : ": " + results,
           short_duration(seconds), commands.substr(0, commands.find('\n')));
}

RunOutcome run_training(TrainOptions options, const TrainCommand& command,
                        const std::string& settings) {
  const std::string& directory = command.directory;
  const Device device = device_of(command);
  const auto begin = std::chrono::steady_clock::now();
  make_directory(directory);
  const DirectoryLock lock(directory);
  if (!command.restart) check_directory(directory, options.model);
  TrainData data;
  load_all(data, options, command.restart ? "" : directory);
  watch_signals();  // from here on, a signal saves a checkpoint
  std::signal(SIGUSR1, [](int) { save_requested = true; });
  TrainingRun run{.options = options,
                  .settings = settings,
                  .directory = directory,
                  .device = device,
                  .save_requested = [] { return save_requested.exchange(false); }};
  if (command.resume_anyway) run.resume = ResumeMode::changed;
  if (command.restart && holds_run(directory))
    run.remove_earlier = [&] { remove_old_run(directory); };
  else if (command.restart)
    remove_old_run(directory);
  const RunEnd end = train_model(run, data, data.test);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (end.outcome == RunOutcome::finished)
    conclude(options, data, directory, end.parameters, took.count());
  return end.outcome;
}

void train(const TrainCommand& command, bool threads_given) {
  std::string settings;
  const TrainOptions options = read_options(command, &settings);
  if (command.dump_config) return fmt::print("{}", settings);
  check(!command.directory.empty() || command.dry_run, ExitCode::usage,
        "name the model directory with -o MODEL_DIR");
  check_files(options);
  warn_unless_empty(warning_about_files(options.data));
  if (options.train.threads > 0 && !threads_given)
    omp_set_num_threads(static_cast<int>(options.train.threads));
  if (command.dry_run) return dry_run(options, command);
  const RunOutcome outcome = run_training(options, command, settings);
  if (outcome == RunOutcome::interrupted)
    log_info("interrupted; run the same command to resume");
  else
    request_stop(0);  // ignores a signal that arrived after the end
}

}  // namespace

void add_train(Command& program) {
  Command command =
      program.command("train", "Train a model from a recipe, or resume a stopped run");
  auto c = std::make_shared<TrainCommand>();
  command.option("-c,--config", c->recipe, "Recipe: a YAML file of settings").takes("FILE");
  command.option("-o,--output", c->directory, "Model directory to create or to resume")
      .takes("MODEL_DIR");
  add_recipe_options(command, c->assignments, c->data, c->device, c->precision);
  command
      .option("--workspace", c->workspace, "Maximum memory to use on the device; default: no limit")
      .takes("GiB")
      .within(1e-3, 1e6)
      .from_environment("FOVEA_WORKSPACE");
  command.flag("--dump-config", c->dump_config, "Print all settings as a recipe, then exit");
  command.flag("--dry-run", c->dry_run,
               "Check files, print parameters, memory and time, then exit");
  Option restart = command.flag("--restart", c->restart,
                                "Start over: replace the run and the model in MODEL_DIR");
  command
      .flag("--resume-anyway", c->resume_anyway,
            "Resume even if text, vocabulary, batches or seed have changed")
      .excludes(restart);
  command.footer(kExamples);
  command.runs([command, c] { train(*c, command.given("--threads")); });
}

}  // namespace fovea

#include "cli/train.h"

#include <fmt/format.h>
#include <omp.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/signals.h"
#include "cli/options.h"
#include "cli/session.h"
#include "tensor/workspace.h"
#include "train/budget.h"
#include "train/card.h"
#include "train/data.h"
#include "train/doubts.h"
#include "train/estimate.h"
#include "train/pretrained.h"
#include "train/run.h"
#include "train/unused.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  Train the published Multi30k model; data below /data:
    fovea train -c recipes/multi30k-en-de-tiny.yml -o tiny --data /data

  Look before: files, parameters, memory and time, measured with a few real updates:
    fovea train -c recipes/multi30k-en-de-tiny.yml -o tiny --data /data --dry-run

  Another size, in bf16:
    fovea train -c recipe.yml -o model --set model.size=256 --set model.heads=8 --precision bf16

  A model that labels texts, or answers questions about them (then: fovea classify):
    fovea train -c recipes/trec.yml -o trec --data /data
    fovea train -c recipes/babi1.yml -o babi1 --data /data

  Embeddings that begin as word vectors (word2vec, GloVe, fastText) and are not changed:
    fovea train -c recipes/sst2.yml -o sst2 --data /data --set model.embedding=300 \
      --set vectors.source=glove.6B.300d.txt --set vectors.frozen=true

  One head of a Transformer learns word alignments that another program found (then: fovea align):
    fovea train -c recipe.yml -o model --set data.alignments=train.links

  Batches as large as 8 GiB hold; training says how large that is:
    fovea train -c recipe.yml -o model --device cuda --workspace 8 --set batch.tokens=auto

  All settings with what they mean, as a recipe:
    fovea train --dump-config

Paths in a recipe start at the folder given with --data and the recipe's data.root below it; without
both at $FOVEA_DATA, else at the current folder. So do those of text, vocabularies and word vectors
given with --set.

The same command goes on where a stopped or killed run left off, with the same result to the
bit; not so where memory ran short. Ctrl-C and SIGTERM save and stop; SIGUSR1 saves and goes on. A
model that cannot be gone on with is replaced only with --restart.

Training ends after train.updates, or when valid.patience validations in a row brought nothing
better. The default of 20,000 updates reads a million short sentence pairs some seven times, which
takes hours on a few cores; the model that comes along had 16,000 larger ones on a GPU.

MODEL_DIR afterwards holds model.safetensors (the best by valid.stop_metric, or the average of
the last validations), config.yml, the vocabulary, README.md (what it was trained on, and how well),
recipe.yml (all settings), metrics.jsonl, tensorboard/, checkpoints/ and snapshots/ (both only
needed to go on training or averaging).)";

struct TrainCommand {
  std::string recipe, directory, data, precision, device = "cpu";
  std::vector<std::string> assignments;
  bool dump_config = false, dry_run = false, restart = false;
  double workspace = 0;  // GiB; 0: whatever there is
};

Device device_of(const TrainCommand& command) {
  const Device device = device_named(command.device);
  limit_memory(device, static_cast<size_t>(command.workspace * 0x1p30));
  return device;
}

std::atomic<bool> save_asked{false};

TrainOptions read_options(const TrainCommand& command, std::string* dump) {
  TrainOptions options;
  Settings settings;
  options.describe(settings);
  for (const char* key : {"base", "compare", "variants"})
    settings.foreign(key,
                     "a file with this is for 'fovea compare -c FILE', which trains each variant");
  if (!command.recipe.empty()) settings.read_file(command.recipe, Exit::data);
  options.data.start_at(command.data);
  if (!command.precision.empty()) settings.set("train.precision=" + command.precision);
  for (const std::string& assignment : command.assignments) settings.set(assignment);
  if (!command.dump_config) options.complete(Exit::data);
  if (options.train.updates > 0 && options.schedule.warmup >= options.train.updates)
    log_warning(
        "schedule.warmup: the rate rises over {} updates, but there are only {}: little "
        "will be learnt; lower schedule.warmup or raise train.updates",
        with_commas(options.schedule.warmup), with_commas(options.train.updates));
  for (const std::string& unused : unused_settings(options)) log_warning("{}", unused);
  if (!command.dump_config && !options.validates())
    log_warning(
        "there is no validation text: nobody will know when to stop, and the model of the last "
        "update is kept, good or not; name one in {}",
        options.data.labelled() ? "data.valid, or set data.hold_out"
                                : "data.valid_source and data.valid_target");
  *dump = settings.dump();
  return options;
}

// A restarted run keeps nothing of the one before but the directory.
void remove_old_run(const std::string& directory) {
  std::error_code error;
  for (const char* name : {"checkpoints", "snapshots", "tensorboard", "metrics.jsonl", "vocab.spm",
                           "vocab.txt", "source.spm", "source.txt", "target.spm", "target.txt",
                           "model.safetensors", "config.yml", "recipe.yml"})
    if (std::filesystem::remove_all(directory + "/" + name, error); error)
      fail(Exit::files, directory, "/", name, ": cannot be removed: ", error.message());
}

void warn_of(const std::string& doubt) {
  if (!doubt.empty()) log_warning("{}", doubt);
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

void print_estimate(const Estimate& e, const TrainOptions& options) {
  constexpr double kMebibyte = 1 << 20;
  const double updates = static_cast<double>(options.train.updates);
  fmt::print("parameters          {}\n", with_commas(e.parameters));
  fmt::print("batches per epoch   {}\n", with_commas(e.batches));
  fmt::print("updates per epoch   {}\n", with_commas(e.updates));
  fmt::print("tokens per batch    {}\n", with_commas(options.batch.tokens));
  fmt::print("words per update    {}\n", with_commas(static_cast<int64_t>(e.words)));
  fmt::print("words per second    {}\n", with_commas(static_cast<int64_t>(e.words_per_second)));
  fmt::print("seconds per update  {:.3f}\n", e.update_seconds);
  fmt::print("memory              {:.0f} MiB\n", e.memory_bytes / kMebibyte);
  fmt::print("checkpoint          {:.1f} MiB × {}\n", e.checkpoint_bytes / kMebibyte,
             options.checkpoint.keep);
  if (updates > 0)
    fmt::print("time                {} for {} updates, without validation\n",
               short_duration(updates * e.update_seconds), with_commas(options.train.updates));
}

// What makes a training of hours shorter here; nothing where it is short.
void print_ways_to_shorten(const Estimate& e, const TrainOptions& options, Device device) {
  constexpr double kLong = 3600;
  if (static_cast<double>(options.train.updates) * e.update_seconds < kLong) return;
  const bool on_host = device == Device{Cpu{}};
  if (options.train.precision == Precision::f32 && gains_from_bf16(device))
    fmt::print("shorter             --precision bf16{}\n",
               on_host ? ": a third less, or better" : "");
  if (on_host)
    fmt::print("shorter             --device cuda on a machine with a GPU: minutes for an hour\n");
  fmt::print(
      "shorter             --set train.updates=N with less than {}, or a smaller model.size\n",
      with_commas(options.train.updates));
}

// With --restart the directory counts as empty, and it may be left out.
void dry_run(TrainOptions options, const TrainCommand& command) {
  const bool anew = command.restart || command.directory.empty();
  if (!anew) check_directory(command.directory, options.model);
  TrainData data;
  load_all(data, options, anew ? "" : command.directory);
  const Device device = device_of(command);
  if (options.batch.tokens == kAutomaticTokens)
    options.batch.tokens = anew ? token_budget(options, data.train, device)
                                : batch_tokens(options, data.train, command.directory, device);
  log_info("making the model");
  const auto model = make_model(options.model, options.train.seed, Type::f32, device);
  model->parameters().allocate_gradients();
  warn_of(doubt_of_size(model->parameters().size(), data.train));
  if (options.vectors.given()) take_vectors(options, data.source, data.target, model->parameters());
  const Estimate found = estimate(*model, data.train, options);
  print_estimate(found, options);
  print_ways_to_shorten(found, options, device);
}

std::vector<Metrics> read_log(const std::string& directory) {
  try {
    return read_metrics(directory + "/metrics.jsonl");
  } catch (const Error&) {
    return {};  // training can do without, and so can what is said of it
  }
}

// The model's card, and a last line that says where the model is and how good.
void conclude(const TrainOptions& options, const TrainData& data, const std::string& directory,
              int64_t parameters, double seconds) {
  const Figures figures = figures_of(read_log(directory), options.valid.stop_metric);
  const std::filesystem::path folder = std::filesystem::absolute(directory).lexically_normal();
  const std::string name = (folder / "").parent_path().filename().string();
  write_card(directory, card_text({name, options, data, parameters, figures}));
  const std::string results = summary_of(figures, options.valid.stop_metric);
  const char* quote = directory.find(' ') == std::string::npos ? "" : "'";  // for the shell
  const auto [command, argument] = options.data.example_of_use(example_sentence(data));
  log_info("model in {}{} (took {}); try: {} -m {}{}{} {}", directory,
           results.empty() ? "" : ": " + results, short_duration(seconds), command, quote,
           directory, quote, argument);
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
  if (command.restart) remove_old_run(directory);  // not before the text was found to be sound
  watch_signals();                                 // from here on there is something to save
  std::signal(SIGUSR1, [](int) { save_asked = true; });
  const RunEnd end = train_model({.options = options,
                                  .settings = settings,
                                  .directory = directory,
                                  .device = device,
                                  .save_requested = [] { return save_asked.exchange(false); }},
                                 data, data.test);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (end.outcome == RunOutcome::finished)
    conclude(options, data, directory, end.parameters, took.count());
  return end.outcome;
}

void train(const TrainCommand& command, bool threads_given) {
  std::string settings;
  const TrainOptions options = read_options(command, &settings);
  if (command.dump_config) return fmt::print("{}", settings);
  check(!command.recipe.empty() || !command.assignments.empty(), Exit::usage,
        "name a recipe with -c FILE; recipes/ holds some, --dump-config prints all settings");
  check(!command.directory.empty() || command.dry_run, Exit::usage,
        "name the model directory with -o MODEL_DIR");
  check_files(options);
  warn_of(doubt_of_files(options.data));
  if (options.train.threads > 0 && !threads_given)
    omp_set_num_threads(static_cast<int>(options.train.threads));
  if (command.dry_run) return dry_run(options, command);
  const RunOutcome outcome = run_training(options, command, settings);
  if (outcome == RunOutcome::interrupted)
    log_warning("stopped; the same command goes on from here");
  else
    request_stop(0);  // a signal that came when all was done changes nothing
}

}  // namespace

void add_train(Command& program) {
  Command command =
      program.command("train", "Train a model from a recipe; the same command resumes");
  auto c = std::make_shared<TrainCommand>();
  command.option("-c,--config", c->recipe, "Recipe: a YAML file of settings").takes("FILE");
  command.option("-o,--output", c->directory, "Model directory to make or go on with")
      .takes("MODEL_DIR");
  command.option("--set", c->assignments, "One setting, after the recipe: train.seed=2")
      .takes("KEY=VALUE")
      .repeated();
  add_device_option(command, c->device);
  command
      .option("--data", c->data,
              "Folder that the recipe's paths start at; default: $FOVEA_DATA, else the current")
      .takes("DIR");
  command
      .option("--workspace", c->workspace,
              "Most memory to take on the device; default: whatever there is")
      .takes("GiB")
      .within(1e-3, 1e6)
      .from_environment("FOVEA_WORKSPACE");
  command.option("--precision", c->precision, "Numbers of matrix products: f32, bf16")
      .among({"f32", "bf16"});
  command.flag("--dump-config", c->dump_config, "Print all settings as a recipe and end");
  command.flag("--dry-run", c->dry_run, "Check files, print parameters, memory and time, and end");
  command.flag("--restart", c->restart, "Forget what MODEL_DIR holds and begin anew");
  command.footer(kExamples);
  command.runs([command, c] { train(*c, command.given("--threads")); });
}

}  // namespace fovea

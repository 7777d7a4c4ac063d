#include "compare/compare_run.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/files.h"
#include "base/log.h"
#include "base/process_pool.h"
#include "base/signals.h"
#include "compare/comparison.h"
#include "compare/comparison_report.h"
#include "explain/attention_picture.h"
#include "train/data_warnings.h"
#include "train/train_model.h"

namespace fovea {
namespace {

constexpr const char* kDiverged = "diverged";

// A variant of the comparison. If this command does not select it for training, it may still have
// results of an earlier command.
struct Entry {
  std::string name;
  TrainingRun run;
  std::vector<std::string> changes;
  bool selected = true;
  std::optional<int64_t> measured_at = {};  // updates of the model of the earlier results
  bool reported = false;                    // the report has a row for it
};

std::vector<std::string> assignments_of(const CompareSetup& c) {
  std::vector<std::string> all = c.assignments;
  if (!c.precision.empty()) all.push_back("train.precision=" + c.precision);
  return all;
}

std::string recipe_of(TrainOptions options) { return Settings(options).dump(); }

Entry entry_of(const CompareSetup& c, const ComparisonPlan& plan,
               const ComparisonVariant& variant) {
  Entry entry{variant.name, {}, variant.changes};
  TrainingRun& run = entry.run;
  run.options = plan.options_of(variant, assignments_of(c));
  run.directory = c.directory + "/" + variant.name;
  run.device = device_named(c.device);
  run.options.data.start_at(c.data, plan.file);
  try {
    run.options.complete(ExitCode::data);
  } catch (const Error& error) {
    fail(error.code(), plan.file, ": variant ", variant.name, ": ", error.what());
  }
  check(!run.options.data.labelled(), ExitCode::data, plan.file, ": variant ", variant.name,
        ": task: only translation models can be compared; omit task");
  check(run.options.batch.tokens != kAutomaticTokens, ExitCode::data, plan.file, ": variant ",
        variant.name, ": batch.tokens: auto is for fovea train; all models of a comparison need ",
        "batches of the same size: give a number");
  run.settings = recipe_of(run.options);
  return entry;
}

// Returns the selected variants in the order of training, then the other variants, which may have
// earlier results.
std::vector<Entry> entries_of(const CompareSetup& c, const ComparisonPlan& plan) {
  std::vector<std::string> names;
  for (const ComparisonVariant& variant : plan.variants) names.push_back(variant.name);
  for (const std::string& name : c.only)
    check(std::ranges::count(names, name) > 0, ExitCode::usage, "`only` ", name, ": ", plan.file,
          " has no such variant; its variants are ", fmt::format("{}", fmt::join(names, ", ")));
  std::vector<Entry> entries;
  for (const bool selected : {true, false})
    for (const ComparisonVariant& variant : plan.variants) {
      if ((c.only.empty() || std::ranges::count(c.only, variant.name) > 0) != selected) continue;
      try {
        Entry entry = entry_of(c, plan, variant);
        entry.selected = selected;
        const TrainingRun& run = entry.run;
        if (!entries.empty())
          check_same_text(entries.front().run.options, run.options, variant.name);
        entries.push_back(std::move(entry));
      } catch (const Error&) {
        if (selected) throw;  // a variant that is not selected has no results in this case
      }
    }
  return entries;
}

// Loads text and vocabularies, which all models share. Stores vocabularies that it made in DIR.
void load_shared(TrainData& data, std::vector<Entry>& entries, const CompareSetup& c) {
  const TrainOptions& options = entries.front().run.options;
  load_vocabularies(data, options, c.directory);
  load_text(data, options);
  if (!c.dry_run) save_vocabularies(c.directory, data.source, data.target);
  log_info(
      "train: {}; valid: {} and test: {} pairs; {} source and {} target "
      "entries",
      data.train.counts().summary(), with_commas(data.valid.corpus.size()),
      with_commas(data.test.corpus.size()), with_commas(data.source.size()),
      with_commas(data.target.size()));
  for (auto entry = entries.begin(); entry != entries.end();) {
    try {
      fit_model(entry->run.options.model, data);
      ++entry;
    } catch (const Error& error) {
      if (entry->selected)
        fail(error.code(), c.file, ": variant ", entry->name, ": ", error.what());
      entry = entries.erase(entry);
    }
  }
}

void print_plan(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (!entry.selected) continue;
    const auto model = make_model(entry.run.options.model, entry.run.options.train.seed);
    fmt::print("{:<16} {:>12} parameters   {}\n", entry.name,
               with_commas(model->parameters().size()), fmt::join(entry.changes, ", "));
  }
}

// The functions key_of() return the key of a result or a part of this key. The key is text with all
// conditions on which the result depends: the text, the model and the search.
std::string key_of(const RunIdentity& identity) {
  std::string text;
  for (const auto& [name, value] : identity) text += name + ": " + value + "\n";
  return text;
}

std::string key_of(const TestBench& bench, const CompareOptions& compare) {
  return fmt::format("test: {:016x}\nline: {}\nbuckets: {}\n", bench.data.test.corpus.fingerprint(),
                     bench.sentence, compare.length_step) +
         fmt::format("search: {} {}\nbleu: {} {}\ngold: {} {} {} {}\n", bench.valid.beam,
                     bench.valid.length_penalty, static_cast<int>(bench.valid.tokenize),
                     bench.valid.lowercase, compare.gold, compare.gold_source, compare.gold_target,
                     compare.gold_from);
}

std::string key_of(const RunEnd& end, const TestBench& bench, const CompareOptions& compare) {
  return fmt::format("updates: {}\n", end.updates) + key_of(end.identity) + key_of(bench, compare);
}

// Removes the variants that this command does not select from `entries`, except those that an
// earlier command measured with the same settings, text and test. The remaining entries get the
// order of the file.
void keep_earlier_results(std::vector<Entry>& entries, const ComparisonPlan& plan,
                          const TestBench& bench) {
  const std::string test = key_of(bench, plan.options);
  for (Entry& entry : entries) {
    if (entry.selected) continue;
    const std::string found = stored_key(entry.run.directory);
    const std::string identity = key_of(identity_of(entry.run.options, bench.data));
    int64_t updates = 0;
    if (std::sscanf(found.c_str(), "updates: %" SCNd64, &updates) == 1 && found.ends_with(test) &&
        found.find(identity) != std::string::npos)
      entry.measured_at = updates;
  }
  std::erase_if(entries, [](const Entry& entry) { return !entry.selected && !entry.measured_at; });
  const auto place = [&](const Entry& entry) {
    return std::ranges::find(plan.variants, entry.name, &ComparisonVariant::name);
  };
  std::ranges::sort(entries, {}, place);
}

// Trains and measures one model after another.
class CompareRun {
 public:
  CompareRun(const CompareSetup& c, const ComparisonPlan& plan, std::vector<Entry> entries,
             const TestBench& bench)
      : c_(c), plan_(plan), entries_(std::move(entries)), bench_(bench) {
    const std::filesystem::path file(plan.file);
    report_.title = "Comparison: " + file.stem().string();
    report_.line = bench.sentence + 1;
    report_.sentence = shown(bench.data.source, bench.data.test.sources[bench.sentence]);
    report_.reference = bench.data.test.references[bench.sentence];
    report_.aer = !bench.gold.empty();
    report_.buckets = bench.buckets;
    for (const Entry& entry : entries_)
      report_.models.push_back({entry.name, entry.changes, 0, 0, {}, {}});
  }

  // Trains and measures the remaining selected models in separate processes. run() then repeats the
  // work of failed processes, which reports their errors.
  void run_parts() {
    std::vector<ProcessJob> jobs;
    int64_t before = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      if (!entry.selected) continue;
      if (take_result(i)) {
        ++before;
        continue;
      }
      make_directory(entry.run.directory);
      jobs.push_back({entry.name, c_.part_words(entry.name), entry.run.directory + "/compare.log"});
    }
    write_comparison(c_.directory, report_);
    if (jobs.empty()) return;
    log_info("training {} models{}, {} at a time; see {}/NAME/compare.log for the progress of each",
             jobs.size(), before > 0 ? fmt::format(" ({} more are finished)", before) : "",
             c_.at_once, c_.directory);
    run_at_once(jobs,
                {.most = c_.at_once,
                 .before = before,
                 .ended = [this](const ProcessJob& job, int code) { part_ended(job.name, code); }});
  }

  // Adds the earlier results of variants that are not selected.
  void add_earlier_results() {
    for (size_t i = 0; i < entries_.size(); ++i)
      if (!entries_[i].selected) add_earlier_result(i);
  }

  void run_one() {
    for (size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].selected && do_one(i)) request_stop(0);  // as at the end of run()
  }

  // Trains and measures the selected models. Throws ExitCode::diverged at the end if a model
  // diverged.
  void run() {
    const auto selected = std::ranges::count(entries_, true, &Entry::selected);
    int64_t number = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!entries_[i].selected) continue;
      ++number;
      if (entries_[i].reported) continue;
      log_info("{} of {}: {}", number, selected, entries_[i].name);
      try {
        if (!do_one(i)) return log_warning("interrupted; run the same command to resume");
      } catch (const Error& error) {
        if (error.code() != ExitCode::diverged) throw;
        log_warning("{}: {}", entries_[i].name, error.what());
        report_.models[i].failure = kDiverged;
      }
      write_comparison(c_.directory, report_);
    }
    log_info("wrote compare.md, compare.json and compare.html in {}", c_.directory);
    request_stop(0);  // ignores a signal that arrived after the end
    std::string diverged;
    for (const ComparedModel& model : report_.models)
      if (model.failure == kDiverged) diverged += (diverged.empty() ? "" : ", ") + model.name;
    check(diverged.empty(), ExitCode::diverged, "training diverged: ", diverged,
          "; for the other models see the report in ", c_.directory);
  }

 private:
  static std::string shown(const Vocabulary& vocabulary, const std::string& line) {
    return vocabulary.decode(vocabulary.encode(line));
  }

  // Trains and measures model i. Returns false if a signal stops the program before the end.
  bool do_one(size_t i) {
    const Entry& entry = entries_[i];
    ComparedModel& row = report_.models[i];
    make_directory(entry.run.directory);
    const DirectoryLock lock(entry.run.directory);
    check_directory(entry.run.directory, entry.run.options.model);
    const RunEnd end = train_model(entry.run, bench_.data, HeldOut());
    if (end.outcome == RunOutcome::interrupted) return false;
    row.parameters = end.parameters;
    row.updates = end.updates;
    row.train_words_per_s = training_speed(entry.run.directory);
    const ModelBundle package = load_package(entry.run.directory, entry.run.device);
    const std::string key = key_of(end, bench_, plan_.options);
    auto measured = read_measured(entry.run.directory, key);
    if (!measured) {
      log_info("{}: translating the test text with a beam of {}", entry.name, bench_.valid.beam);
      measured = measure_model(*package.model, bench_, stop_requested);
      if (!measured) return false;
      write_measured(entry.run.directory, key, *measured);
    }
    row.measured = measured;
    draw(*package.model, row);
    log_result(row);
    return true;
  }

  static void log_result(const ComparedModel& row) {
    const ModelResults& found = *row.measured;
    log_info("{} | ppl {:.2f} | bleu {:.2f} | chrf {:.2f}{} | {} words/s decoding", row.name,
             found.ppl, found.bleu, found.chrf,
             found.aer ? fmt::format(" | aer {:.2f}", 100 * *found.aer) : "",
             with_commas(static_cast<int64_t>(found.decode_words_per_s)));
  }

  // Adds the result of another process, which ended with exit code `code`, to the report and writes
  // the report. A diverged model is not trained again, because it would diverge again.
  void part_ended(const std::string& name, int code) {
    const auto i =
        static_cast<size_t>(std::ranges::find(entries_, name, &Entry::name) - entries_.begin());
    if (code == static_cast<int>(ExitCode::diverged)) {
      report_.models[i].failure = kDiverged;
      entries_[i].reported = true;
    } else if (code != 0 || !take_result(i)) {
      return;
    }
    write_comparison(c_.directory, report_);
  }

  // Adds the stored result of model i to the report. Returns false if the training is not finished,
  // or if the model was not measured on this bench.
  bool take_result(size_t i) {
    Entry& entry = entries_[i];
    const auto end = past_end(entry.run, bench_.data);
    if (!end || stored_key(entry.run.directory) != key_of(*end, bench_, plan_.options))
      return false;
    entry.measured_at = end->updates;
    entry.reported = add_earlier_result(i);
    if (entry.reported) log_result(report_.models[i]);
    return entry.reported;
  }

  // Adds the earlier result of a model. Returns false if its files no longer exist. Computes the
  // attention for the picture on the CPU, because other processes may use all memory of the device.
  bool add_earlier_result(size_t i) {
    const Entry& entry = entries_[i];
    ComparedModel& row = report_.models[i];
    try {
      const ModelBundle package = load_package(entry.run.directory);
      row.measured = read_measured(entry.run.directory, stored_key(entry.run.directory));
      row.parameters = package.model->parameters().size();
      row.updates = *entry.measured_at;
      row.train_words_per_s = training_speed(entry.run.directory);
      draw(*package.model, row);
      return row.measured.has_value();
    } catch (const Error& error) {
      log_warning("{}: {}", entry.name, error.what());
      return false;
    }
  }

  void draw(const Model& model, ComparedModel& row) const {
    const ChosenPair pair = attend_chosen(model, bench_);
    if (pair.maps.empty()) return;
    row.attention = attention_picture(
        pair.maps, picture_side(bench_.data.target, pair.target, PictureUnit::words),
        picture_side(bench_.data.source, pair.source, PictureUnit::words), row.name);
  }

  const CompareSetup& c_;
  const ComparisonPlan& plan_;
  std::vector<Entry> entries_;
  const TestBench& bench_;
  ComparisonReport report_;
};

}  // namespace

void run_comparison(CompareSetup c) {
  const ComparisonPlan plan = ComparisonPlan::read(c.file);
  if (c.directory.empty()) c.directory = std::filesystem::path(c.file).stem().string();
  for (const char* const of_a_model : {kConfigFile, "checkpoints"}) {
    std::error_code error;
    check(!std::filesystem::exists(std::filesystem::path(c.directory) / of_a_model, error),
          ExitCode::usage, c.directory,
          ": holds a trained model; name another folder with `output`");
  }
  std::vector<Entry> entries = entries_of(c, plan);
  const TrainOptions& first = entries.front().run.options;
  check_files(first);
  const std::string doubt = warning_about_files(first.data);
  if (!doubt.empty() && c.part.empty()) log_warning("{}", doubt);
  if (first.train.threads > 0 && !c.threads_given)
    omp_set_num_threads(static_cast<int>(first.train.threads));
  TrainData data;
  if (c.dry_run) {
    load_shared(data, entries, c);
    make_bench(data, first, plan.options);
    return print_plan(entries);
  }
  make_directory(c.directory);
  std::optional<DirectoryLock> lock;
  if (c.part.empty()) lock.emplace(c.directory);
  load_shared(data, entries, c);
  const TestBench bench = make_bench(data, entries.front().run.options, plan.options);
  keep_earlier_results(entries, plan, bench);
  watch_signals();  // from here on, a signal saves and stops
  CompareRun run(c, plan, std::move(entries), bench);
  if (!c.part.empty()) return run.run_one();
  run.add_earlier_results();
  if (c.at_once > 1) run.run_parts();
  if (stop_requested()) return log_warning("interrupted; run the same command to resume");
  run.run();
}

}  // namespace fovea

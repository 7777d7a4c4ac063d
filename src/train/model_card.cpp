#include "train/model_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"
#include "base/utf8.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark =
    "<!-- Written by fovea train. Without this line the file is yours and stays as it is. -->";

bool is_score(const MetricValue& metric) {
  return metric.name == "bleu" || metric.name == "chrf" || metric.name == "accuracy";
}

std::string figure(const MetricValue& metric) {
  return fmt::format("{} {:.{}f}", metric.name, metric.value, is_score(metric) ? 2 : 4);
}

std::string figures_in(const MetricsLine& line) {
  std::string text;
  for (const MetricValue& metric : line.values)
    if (metric.name != "snapshots") text += (text.empty() ? "" : ", ") + figure(metric);
  return text;
}

// Returns the file names without folders, escaped for a cell of a table.
std::string names_of(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths)
    for (const char c : (text.empty() ? "" : ", ") + printable(fs::path(path).filename().string()))
      text += c == '|' ? "\\|" : std::string(1, c);
  return text;
}

std::string text_row(const char* what, const std::vector<std::string>& sources,
                     const std::vector<std::string>& targets, const Corpus& corpus) {
  if (sources.empty()) return "";
  if (corpus.targets() == TargetKind::labels)
    return fmt::format("| {} | {}: {} examples, {} source pieces |\n", what, names_of(sources),
                       with_commas(corpus.size()), with_commas(corpus.source_tokens()));
  return fmt::format("| {} | {} → {}: {} sentence pairs, {} source and {} target pieces |\n", what,
                     names_of(sources), names_of(targets), with_commas(corpus.size()),
                     with_commas(corpus.source_tokens()), with_commas(corpus.target_tokens()));
}

std::string vocabulary_row(const TrainData& data) {
  const bool joint = data.source.fingerprint() == data.target.fingerprint();
  return fmt::format("| vocabulary | {} |\n",
                     joint ? with_commas(data.source.size()) + " entries for both sides"
                           : with_commas(data.source.size()) + " source and " +
                                 with_commas(data.target.size()) + " target entries");
}

std::string vectors_row(const VectorOptions& vectors) {
  if (!vectors.given()) return "";
  const char* const both = vectors.source.empty() || vectors.target.empty() ? "" : " and ";
  return fmt::format("| initial embeddings | word vectors of {}{}{}{} |\n",
                     printable(vectors.source), both, printable(vectors.target),
                     vectors.frozen ? ", frozen" : "");
}

// Returns a description of the network: its type and the settings that differ from the defaults.
std::string network(ModelConfig model) {
  ModelConfig usual;
  const auto known = Settings(usual).values();
  std::string text;
  for (const auto& setting : Settings(model).values()) {
    const std::string& key = setting.first;
    const bool always = key == "type" || key == "size" || key.ends_with("_layers");
    if (key.ends_with("_words") || (!always && std::ranges::find(known, setting) != known.end()))
      continue;
    text += (text.empty() ? "" : ", ") + key + " " + setting.second;
  }
  return text;
}

std::string base_row(const LoopOptions& train) {
  if (train.from.empty()) return "";
  const std::string base = printable(fs::path(train.from).filename().string());
  if (train.lora.rank == 0) return fmt::format("| started from | {} |\n", base);
  return fmt::format("| adapter | of {}, with rank {} and alpha {:g} |\n", base, train.lora.rank,
                     train.lora.alpha);
}

std::string date_of(const TrainingFigures& figures) {
  const std::time_t when =
      figures.seconds ? static_cast<std::time_t>(*figures.seconds) : std::time(nullptr);
  std::tm parts{};
  gmtime_r(&when, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

std::string best_row(const TrainingFigures& figures) {
  if (!figures.best) return "";
  const MetricsLine& best = *figures.best;
  return fmt::format("| validation | {} ({} update {}) |\n", figures_in(best),
                     best.kind == "average" ? "weights averaged up to" : "weights of",
                     with_commas(best.update));
}

std::string test_row(const TrainingFigures& figures, const ValidOptions& how) {
  if (!figures.test) return "";
  if (figures.test->value("accuracy"))
    return fmt::format("| test | {} |\n", figures_in(*figures.test));
  return fmt::format("| test | {} (beam {}, length penalty {:g}{}) |\n", figures_in(*figures.test),
                     how.beam, how.length_penalty, how.lowercase ? ", case ignored" : "");
}

}  // namespace

TrainingFigures figures_of(const std::vector<MetricsLine>& log, const std::string& stop_metric) {
  TrainingFigures figures;
  const double sign = higher_is_better(stop_metric) ? 1 : -1;
  for (const MetricsLine& line : log) {
    figures.update = line.update;
    figures.epoch = line.epoch;
    if (const auto time = line.value("time")) figures.seconds = time;
    if (line.kind == "test") figures.test = line;
    const auto value = line.value(stop_metric);
    if ((line.kind != "valid" && line.kind != "average") || !value) continue;
    if (!figures.best || sign * *value > sign * *figures.best->value(stop_metric))
      figures.best = line;
  }
  return figures;
}

std::string summary_of(const TrainingFigures& figures, const std::string& stop_metric) {
  std::string text;
  if (figures.best)
    text = fmt::format("best {} at update {}",
                       figure({stop_metric, *figures.best->value(stop_metric)}),
                       with_commas(figures.best->update));
  if (!figures.test) return text;
  MetricsLine scores = *figures.test;  // perplexities are removed below if there is a score
  if (std::ranges::any_of(scores.values, is_score))
    std::erase_if(scores.values, [](const MetricValue& metric) { return !is_score(metric); });
  return text + (text.empty() ? "test " : ", test ") + figures_in(scores);
}

std::string example_sentence(const TrainData& data) {
  constexpr size_t kLeast = 15, kMost = 70;
  const auto fits = [](const std::string& line) {
    return line.size() >= kLeast && line.size() <= kMost &&
           line.find_first_of("\"\\$`!") == std::string::npos && printable(line) == line;
  };
  for (const HeldOut* text : {&data.valid, &data.test})
    if (const auto found = std::ranges::find_if(text->sources, fits); found != text->sources.end())
      return *found;
  return "A sentence.";
}

std::string card_text(const ModelCard& card) {
  const TrainOptions& o = card.options;
  const TrainData& data = card.data;
  const TrainingFigures& figures = card.figures;
  std::string text = fmt::format("{}\n# {}\n\nTrained by fovea {}, {}.\n\n| | |\n|---|---|\n",
                                 kMark, printable(card.name), FOVEA_VERSION, date_of(figures));
  const bool labelled = o.data.labelled();
  const auto& held_out = o.data.hold_out > 0 ? o.data.train : o.data.valid;
  text += text_row("training text", labelled ? o.data.train : o.data.train_source,
                   o.data.train_target, data.train);
  text += text_row("validation text", labelled ? held_out : o.data.valid_source,
                   o.data.valid_target, data.valid.corpus);
  text += text_row("test text", labelled ? o.data.test : o.data.test_source, o.data.test_target,
                   data.test.corpus);
  text += vocabulary_row(data);
  text += vectors_row(o.vectors);
  text += base_row(o.train);
  text += fmt::format("| network | {}; {} parameters |\n", network(o.model),
                      with_commas(card.parameters));
  text += fmt::format("| training | {} updates, {} epochs begun, seed {} |\n",
                      with_commas(figures.update), with_commas(figures.epoch), o.train.seed);
  text += best_row(figures) + test_row(figures, o.valid);
  text +=
      "\nThe shape of the network is in `config.yml`, every setting of the training in "
      "`recipe.yml`. To use it:\n\n"
      "```\n";
  text += card.usage;
  text +=
      "```\n\n"
      "Please add the source and the licence of the text, and what the model is suitable for. "
      "Then remove the first line, so that training does not replace this file.\n";
  return text;
}

void write_card(const std::string& directory, const std::string& text) {
  const std::string path = directory + "/README.md";
  std::error_code error;
  try {
    if (fs::exists(path, error) && !read_file(path).starts_with(kMark)) return;
    write_atomically(path, text);
  } catch (const Error& problem) {
    log_warning("{}; the model has no README.md", problem.what());
  }
}

}  // namespace fovea

#include "cli/evaluate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/evaluate_aer.h"
#include "cli/options.h"
#include "eval/bleu.h"
#include "eval/characters.h"
#include "eval/chrf.h"
#include "eval/report.h"
#include "eval/significance.h"
#include "eval/ter.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  The BLEU of a translation, comparable to published figures (plain text, not tokenised):
    fovea evaluate -r test.de -i output.de

  Four metrics as JSON, the translation straight from a pipe:
    fovea translate < test.en | fovea evaluate -r test.de -m bleu chrf chrf++ ter -f json

  Is the new system better than the old one, or is it chance?
    fovea evaluate -r test.de -i old.de new.de -m bleu chrf --paired-bs

  How wrong word alignments are (Pharaoh 0-0) by gold links (Talp: 1-1 sure, 1p2 possible):
    fovea evaluate --aer -r gold.talp -i forward.links joined.links

Several -r files are several references for each line. Scores, intervals and p-values equal those
of sacreBLEU 2.6.0, but p is 1 where the scores are equal; BLEU and chrF: higher is better, TER:
lower is better.)";

constexpr size_t kLongestLine = size_t{1} << 28;
constexpr size_t kManyTokenized = 100;

struct EvaluateOptions {
  std::vector<std::string> references, inputs, metrics{"bleu"};
  BleuOptions bleu;
  std::string tokenize = "auto", smooth = "exp", format = "text";
  std::string language_pair;
  double smooth_value = 0;
  bool lowercase = false;
  ChrfOptions chrf;
  TercomOptions ter;
  int width = 1;
  bool score_only = false, abbreviated = false, sentence_level = false;
  bool confidence = false, paired_bs = false, paired_ar = false;
  bool aer = false;
  int gold_from = 1;
  size_t confidence_n = 1000, paired_bs_n = 1000, paired_ar_n = 10000;

  Names names() const { return abbreviated ? Names::abbreviated : Names::full; }
  bool json() const { return format == "json"; }
};

struct TextFile {
  std::string name;
  Lines lines;
};

using Metrics = std::vector<std::unique_ptr<TranslationMetric>>;

// ---- reading ----

TextFile read_text(const std::string& path) {
  LineReader reader = LineReader::once(path, kLongestLine);
  TextFile file{path == "-" ? "standard input" : path, {}};
  std::string first_bad;
  int64_t bad = 0;
  for (Line line; reader.next(line);) {
    check(!line.cut, Exit::data, reader.where(), ": a line of more than ", kLongestLine,
          " bytes: is this a text file?");
    if (!is_utf8(line.text) && bad++ == 0) first_bad = reader.where();
    file.lines.push_back(utf8_of(without_trailing_blanks(characters_of(line.text))));
  }
  if (bad > 0)
    log_warning("{}: not UTF-8 ({} lines of {} in all); bad bytes count as U+FFFD", first_bad, bad,
                file.name);
  return file;
}

void check_same_length(const TextFile& a, const TextFile& b) {
  size_t n = a.lines.size(), m = b.lines.size();
  if (n == m) return;
  const TextFile& longer = n > m ? a : b;
  fail(Exit::data, a.name, " has ", with_commas(static_cast<int64_t>(n)), " lines, ", b.name, " ",
       with_commas(static_cast<int64_t>(m)), "; first line without partner: ", longer.name, ":",
       std::min(n, m) + 1, "; hypothesis and reference must match line by line");
}

void warn_if_tokenized(const TextFile& system) {
  auto tokenized = static_cast<size_t>(
      std::count_if(system.lines.begin(), system.lines.end(),
                    [](const std::string& line) { return line.ends_with(" ."); }));
  if (tokenized >= kManyTokenized)
    log_warning(
        "{}: {} lines end in \" .\": it looks as if you forgot to detokenise, which changes "
        "BLEU; if the text is meant to be tokenised, use --tokenize none",
        system.name, tokenized);
}

// ---- printing ----

std::string in_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<int> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      line += row[c];
      line.append(static_cast<size_t>(widths[c] - display_width(row[c]) + 2), ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

// The metrics of one system, one line each, aligned at the "=".
std::string score_lines(const std::vector<ScoreReport>& reports, const EvaluateOptions& options) {
  std::vector<std::string> lines;
  size_t widest = 0;
  for (const ScoreReport& report : reports) {
    lines.push_back(options.score_only ? score_text(report, options.width)
                                       : score_line(report, options.width, options.names()));
    widest = std::max(widest, lines.back().find(" = "));
  }
  std::string text;
  for (const std::string& line : lines) {
    if (!options.score_only) text.append(widest - line.find(" = "), ' ');
    text += line + "\n";
  }
  return text;
}

std::string score_objects(const std::vector<ScoreReport>& reports, int width) {
  if (reports.size() == 1) return score_json(reports.front(), width) + "\n";
  std::string text = "[\n";
  for (const ScoreReport& report : reports)
    text += score_json(report, width) + (&report == &reports.back() ? "\n" : ",\n");
  return text + "]\n";
}

nlohmann::ordered_json or_null(const std::optional<double>& x) {
  return x ? nlohmann::ordered_json(*x) : nlohmann::ordered_json();
}

// Several systems: [system][metric]
using ReportTable = std::vector<std::vector<ScoreReport>>;

std::string table_json(const std::vector<std::string>& names, const ReportTable& table, bool paired,
                       int width) {
  auto systems = nlohmann::ordered_json::array();
  for (size_t s = 0; s < table.size(); ++s) {
    nlohmann::ordered_json system{{"system", names[s]}};
    for (const ScoreReport& report : table[s]) {
      if (paired) {
        system[report.name] = {{"score", report.score.score},
                               {"p_value", or_null(report.score.p_value)},
                               {"mean", or_null(report.score.mean)},
                               {"ci", or_null(report.score.ci)}};
      } else {
        system[report.name] = score_text(report, width);
      }
    }
    systems.push_back(std::move(system));
  }
  return systems.dump(4, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string cell(const TestedScore& score, int width) {
  std::string text = fmt::format("{:.{}f}", score.score, width);
  if (score.mean) text += fmt::format(" ({:.{}f} ± {:.{}f})", *score.mean, width, *score.ci, width);
  if (score.p_value)
    text += fmt::format(" (p = {:.4f}){}", *score.p_value, *score.p_value < 0.05 ? "*" : "");
  return text;
}

std::string table_text(const std::vector<std::string>& names, const ReportTable& table,
                       const EvaluateOptions& options) {
  std::vector<std::vector<std::string>> rows{{"System"}};
  for (const ScoreReport& report : table.front())
    rows.front().push_back(report.name + (report.score.mean ? " (μ ± 95% CI)" : ""));
  for (size_t s = 0; s < table.size(); ++s) {
    rows.push_back({names[s]});
    for (const ScoreReport& report : table[s])
      rows.back().push_back(cell(report.score, options.width));
  }
  std::string text = in_columns(rows);
  if (options.score_only) return text;
  if (options.paired_bs || options.paired_ar)
    text += fmt::format(
        "\nPaired {} test, {} trials, each system against the baseline.\n"
        "p: how likely a difference this large is by chance if the systems were alike; "
        "*: p < 0.05.\n",
        options.paired_bs ? "bootstrap" : "approximate randomisation",
        options.paired_bs ? options.paired_bs_n : options.paired_ar_n);
  text += "\n";
  for (const ScoreReport& report : table.front())
    text += report.name + "|" + to_string(report.signature, options.names()) + "\n";
  return text;
}

// ---- scoring ----

Metrics make_metrics(const EvaluateOptions& options) {
  BleuOptions bleu = options.bleu;
  bleu.effective_order = options.sentence_level;
  Metrics metrics;
  for (const std::string& name : options.metrics) {
    ChrfOptions chrf = options.chrf;
    if (name == "chrf++") chrf.word_order = 2;
    if (name == "bleu") {
      metrics.push_back(std::make_unique<Bleu>(bleu));
    } else if (name == "ter") {
      metrics.push_back(std::make_unique<Ter>(options.ter));
    } else {
      metrics.push_back(std::make_unique<Chrf>(chrf));
    }
  }
  return metrics;
}

ScoreReport report_of(const TranslationMetric& metric, const SignatureContext& context,
                      std::span<const double> sums) {
  return {metric.name(),
          signature(metric, context),
          {metric.score(sums), {}, {}, {}},
          metric.details(sums)};
}

std::string evaluate_sentences(const EvaluateOptions& options, const Metrics& metrics,
                               const Lines& system, std::span<const Lines> references) {
  std::vector<SegmentStatistics> statistics;
  for (const auto& metric : metrics) statistics.push_back(metric->statistics(system, references));
  std::string text;
  for (size_t s = 0; s < system.size(); ++s) {
    nlohmann::ordered_json object{{"line", s + 1}};
    for (size_t m = 0; m < metrics.size(); ++m) {
      ScoreReport report =
          report_of(*metrics[m], {references.size(), {}, {}}, statistics[m].row(s));
      object[report.name] = std::stod(score_text(report, options.width));
      if (options.json()) continue;
      text += options.score_only ? score_text(report, options.width)
                                 : score_line(report, options.width, options.names());
      text += m + 1 < metrics.size() ? "\t" : "\n";
    }
    if (options.json()) text += object.dump() + "\n";
  }
  return text;
}

std::string evaluate_one(const EvaluateOptions& options, const Metrics& metrics,
                         const Lines& system, std::span<const Lines> references) {
  std::vector<ScoreReport> reports;
  SignatureContext context{references.size(), {}, {}};
  if (options.confidence) context.bootstrap = options.confidence_n;
  for (const auto& metric : metrics) {
    SegmentStatistics statistics = metric->statistics(system, references);
    reports.push_back(report_of(*metric, context, statistics.sum()));
    if (!options.confidence) continue;
    Interval interval =
        confidence_interval(bootstrap_scores(*metric, statistics, options.confidence_n));
    reports.back().score.mean = interval.mean;
    reports.back().score.ci = interval.ci;
  }
  return options.json() ? score_objects(reports, options.width) : score_lines(reports, options);
}

std::string evaluate_several(const EvaluateOptions& options, const Metrics& metrics,
                             const std::vector<TextFile>& systems,
                             std::span<const Lines> references) {
  bool paired = options.paired_bs || options.paired_ar;
  SignatureContext context{references.size(), {}, {}};
  if (options.paired_bs) context.bootstrap = options.paired_bs_n;
  if (options.paired_ar) context.randomization = options.paired_ar_n;
  ReportTable table(systems.size());
  for (const auto& metric : metrics) {
    std::vector<SegmentStatistics> statistics;
    for (size_t s = 0; s < systems.size(); ++s) {
      statistics.push_back(metric->statistics(systems[s].lines, references));
      table[s].push_back(report_of(*metric, context, statistics[s].sum()));
    }
    if (!paired) continue;
    auto results = options.paired_bs ? paired_test(PairedTest::bootstrap, *metric, statistics,
                                                   options.paired_bs_n)
                                     : paired_test(PairedTest::approximate_randomization, *metric,
                                                   statistics, options.paired_ar_n);
    for (size_t s = 0; s < systems.size(); ++s) table[s].back().score = results[s];
  }
  std::vector<std::string> names;
  for (const TextFile& system : systems) names.push_back(system.name);
  if (paired) names.front() = "Baseline: " + names.front();
  return options.json() ? table_json(names, table, paired, options.width)
                        : table_text(names, table, options);
}

void check_usage(const EvaluateOptions& options) {
  size_t systems = std::max<size_t>(1, options.inputs.size());
  bool paired = options.paired_bs || options.paired_ar;
  auto stdin_uses = std::count(options.references.begin(), options.references.end(), "-") +
                    std::count(options.inputs.begin(), options.inputs.end(), "-") +
                    (options.inputs.empty() ? 1 : 0);
  check(stdin_uses <= 1, Exit::usage,
        "standard input can be read only once: give -i or -r a file name");
  check(!paired || systems > 1, Exit::usage,
        "a paired test compares systems: give at least two -i files, the baseline first");
  check(!options.confidence || systems == 1, Exit::usage,
        "--confidence is for one system: use --paired-bs for several");
  check(!options.sentence_level || systems == 1, Exit::usage,
        "--sentence-level is for one system: give one -i file");
  check(!options.sentence_level || !(options.confidence || paired), Exit::usage,
        "--sentence-level cannot be combined with --confidence or a paired test");
}

void evaluate_alignments(const EvaluateOptions& options) {
  check(options.references.size() == 1, Exit::usage, "--aer: give one -r file of gold links");
  const bool tested = options.confidence || options.paired_bs || options.paired_ar;
  check(!options.sentence_level && !tested, Exit::usage,
        "--aer cannot be combined with --sentence-level, --confidence or a paired test");
  AerOptions aer{options.references.front(), options.inputs, options.gold_from, options.width};
  if (aer.inputs.empty()) aer.inputs.emplace_back("-");
  aer.score_only = options.score_only;
  aer.json = options.json();
  OutputFile out("-");
  out.write(evaluate_aer(aer));
  out.close();
}

// --tokenize auto: the tokenizer of the target language, or of the references' script.
BleuTokenizer choose_tokenizer(const EvaluateOptions& options, const TextFile& reference) {
  const std::string& pair = options.language_pair;
  const size_t dash = pair.find('-');
  check(pair.empty() || (dash > 0 && dash + 1 < pair.size()), Exit::usage, "--language-pair ", pair,
        ": expected two codes with a hyphen between them, for example en-zh");
  if (options.bleu.tokenize != BleuTokenizer::automatic) return options.bleu.tokenize;
  const BleuTokenizer chosen = pair.empty()
                                   ? tokenizer_of_text(reference.lines)
                                   : tokenizer_of_language(std::string_view(pair).substr(dash + 1));
  if (chosen != BleuTokenizer::mteval13 && pair.empty())
    log_info("{}: most letters are of a script without blanks: BLEU uses --tokenize {}",
             reference.name, name_of(chosen));
  return chosen;
}

void evaluate(EvaluateOptions options) {
  check_usage(options);
  if (options.aer) return evaluate_alignments(options);
  std::vector<TextFile> references, systems;
  for (const std::string& path : options.references) references.push_back(read_text(path));
  for (const std::string& path : options.inputs) systems.push_back(read_text(path));
  if (options.inputs.empty()) {
    if (isatty(STDIN_FILENO)) log_info("type a translation per line; Ctrl-D ends; files: -i FILE");
    systems.push_back(read_text("-"));
  }
  for (const TextFile& reference : references) check_same_length(references.front(), reference);
  for (const TextFile& system : systems) check_same_length(system, references.front());
  check(!references.front().lines.empty(), Exit::data, references.front().name,
        " is empty: there is nothing to evaluate");
  bool has_bleu = std::count(options.metrics.begin(), options.metrics.end(), "bleu") > 0;
  if (has_bleu) options.bleu.tokenize = choose_tokenizer(options, references.front());
  for (const TextFile& system : systems)
    if (has_bleu && options.bleu.tokenize != BleuTokenizer::none) warn_if_tokenized(system);

  std::vector<Lines> lines;
  for (TextFile& reference : references) lines.push_back(std::move(reference.lines));
  Metrics metrics = make_metrics(options);
  std::string text;
  if (options.sentence_level) {
    text = evaluate_sentences(options, metrics, systems.front().lines, lines);
  } else if (systems.size() == 1) {
    text = evaluate_one(options, metrics, systems.front().lines, lines);
  } else {
    text = evaluate_several(options, metrics, systems, lines);
  }
  OutputFile out("-");
  out.write(text);
  out.close();
}

// ---- options ----

void add_metric_options(Command& command, EvaluateOptions& o) {
  Command bleu = command.group("BLEU");
  bleu.option("--tokenize", o.tokenize,
              "How words are found; auto: by -l, else by the script of the references")
      .among({"auto", "13a", "intl", "zh", "char", "none"})
      .with_default();
  bleu.option("--smooth", o.smooth, "For orders without a match")
      .among({"exp", "floor", "add-k", "none"})
      .with_default();
  bleu.option("--smooth-value", o.smooth_value, "For floor (0.1) and add-k (1)").not_negative();

  Command chrf = command.group("chrF");
  chrf.option("--chrf-char-order", o.chrf.char_order, "Longest character n-gram")
      .within(1, 100)
      .with_default();
  chrf.option("--chrf-word-order", o.chrf.word_order, "Longest word n-gram; chrf++ means 2")
      .within(0, 100)
      .with_default();
  chrf.option("--chrf-beta", o.chrf.beta, "How much more recall counts than precision")
      .within(1, 100)
      .with_default();
  chrf.flag("--chrf-whitespace", o.chrf.whitespace, "White space counts as a character");
  chrf.flag("--chrf-eps-smoothing", o.chrf.eps_smoothing, "Average F over all orders");

  Command ter = command.group("TER");
  ter.flag("--ter-normalized", o.ter.normalized, "Split punctuation off words first");
  ter.flag("--ter-no-punct", o.ter.no_punct, "Ignore punctuation");
  ter.flag("--ter-asian-support", o.ter.asian_support,
           "With these two, treat Chinese and Japanese characters");
  ter.flag("--ter-case-sensitive", o.ter.case_sensitive, "Upper and lower case differ");
}

void add_alignment_options(Command& command, EvaluateOptions& o) {
  Command group = command.group("Word alignment");
  group.flag("--aer", o.aer,
             "Alignment error rate of -i files (Pharaoh) by the -r file (Talp); -m is not used");
  group.option("--gold-from", o.gold_from, "The number of the first word in the -r file")
      .within(0, 1)
      .with_default();
}

void add_test_options(Command& command, EvaluateOptions& o) {
  Command tests = command.group("Significance");
  tests.flag("--confidence", o.confidence, "95 % interval of one system, by bootstrap");
  Option bootstrap =
      tests.flag("--paired-bs", o.paired_bs, "Compare systems with the first, by paired bootstrap");
  tests
      .flag("--paired-ar", o.paired_ar,
            "Compare systems with the first, by approximate randomisation")
      .excludes(bootstrap);
  constexpr int kMost = 100'000'000;
  tests.option("--confidence-n", o.confidence_n, "Samples").within(1, kMost).with_default();
  tests.option("--paired-bs-n", o.paired_bs_n, "Samples").within(1, kMost).with_default();
  tests.option("--paired-ar-n", o.paired_ar_n, "Trials").within(1, kMost).with_default();
}

void add_common_options(Command& command, EvaluateOptions& o) {
  command
      .option("-r,--reference,reference", o.references,
              "Reference files, one sentence per line (.gz is read too)")
      .required()
      .takes("FILE");
  command
      .option("-i,--input", o.inputs,
              "Hypothesis files, the first is the baseline; default: standard input")
      .takes("FILE");
  command.option("-m,--metrics", o.metrics, "What to compute")
      .among({"bleu", "chrf", "chrf++", "ter"})
      .split_at_commas()
      .with_default();
  command
      .option("-l,--language-pair", o.language_pair,
              "Source and target language, as en-zh; the target decides how BLEU finds words")
      .takes("PAIR");
  command.flag("--lowercase", o.lowercase, "Ignore case in BLEU and chrF (TER does anyway)");
  command.option("-f,--format", o.format, "How to print it").among({"text", "json"}).with_default();
  command.option("-w,--width", o.width, "Digits after the point").within(0, 15).with_default();
  command.flag("-b,--score-only", o.score_only, "Print the score alone");
  command.flag("--short", o.abbreviated, "Abbreviate the signature");
  command.flag("--sentence-level", o.sentence_level, "One line per sentence instead of one in all");
}

}  // namespace

void add_evaluate(Command& program) {
  Command command = program.command(
      "evaluate", "Score translations (BLEU, chrF, TER, significance) and word alignments (AER)");
  auto options = std::make_shared<EvaluateOptions>();
  add_common_options(command, *options);
  add_metric_options(command, *options);
  add_test_options(command, *options);
  add_alignment_options(command, *options);
  command.footer(kExamples);
  command.runs([command, options] {
    options->bleu.tokenize = bleu_tokenizer(options->tokenize);
    options->bleu.smooth = bleu_smoothing(options->smooth);
    options->bleu.lowercase = options->chrf.lowercase = options->lowercase;
    if (command.given("--smooth-value")) options->bleu.smooth_value = options->smooth_value;
    if (options->aer && !command.given("--width")) options->width = 2;
    evaluate(*options);
  });
}

}  // namespace fovea

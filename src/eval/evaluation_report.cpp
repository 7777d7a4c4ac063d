#include "eval/evaluation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/utf8.h"
#include "eval/significance.h"
#include "eval/ter.h"

namespace fovea {
namespace {

using Metrics = std::vector<std::unique_ptr<TranslationMetric>>;

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

// Returns the scores of one system, one metric per line, aligned at the "=".
std::string score_lines(const std::vector<ScoreReport>& reports, const EvaluationOptions& options) {
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

// The scores of several systems: [system][metric].
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
                       const EvaluationOptions& options) {
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

Metrics make_metrics(const EvaluationOptions& options) {
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

std::string evaluate_sentences(const EvaluationOptions& options, const Metrics& metrics,
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
      if (options.json) continue;
      text += options.score_only ? score_text(report, options.width)
                                 : score_line(report, options.width, options.names());
      text += m + 1 < metrics.size() ? "\t" : "\n";
    }
    if (options.json) text += object.dump() + "\n";
  }
  return text;
}

std::string evaluate_one(const EvaluationOptions& options, const Metrics& metrics,
                         const Lines& system, std::span<const Lines> references) {
  std::vector<ScoreReport> reports;
  SignatureContext context{references.size(), {}, {}};
  if (options.confidence) context.bootstrap = options.confidence_n;
  for (const auto& metric : metrics) {
    SegmentStatistics statistics = metric->statistics(system, references);
    reports.push_back(report_of(*metric, context, statistics.sum()));
    if (!options.confidence) continue;
    ConfidenceInterval interval =
        confidence_interval(bootstrap_scores(*metric, statistics, options.confidence_n));
    reports.back().score.mean = interval.mean;
    reports.back().score.ci = interval.ci;
  }
  return options.json ? score_objects(reports, options.width) : score_lines(reports, options);
}

std::string evaluate_several(const EvaluationOptions& options, const Metrics& metrics,
                             const std::vector<NamedText>& systems,
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
  for (const NamedText& system : systems) names.push_back(system.name);
  if (paired) names.front() = "Baseline: " + names.front();
  return options.json ? table_json(names, table, paired, options.width)
                      : table_text(names, table, options);
}

}  // namespace

std::string evaluation_report(const EvaluationOptions& options,
                              const std::vector<NamedText>& systems,
                              std::span<const Lines> references) {
  const Metrics metrics = make_metrics(options);
  if (options.sentence_level)
    return evaluate_sentences(options, metrics, systems.front().lines, references);
  if (systems.size() == 1) return evaluate_one(options, metrics, systems.front().lines, references);
  return evaluate_several(options, metrics, systems, references);
}

}  // namespace fovea

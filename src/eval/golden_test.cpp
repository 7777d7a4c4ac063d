// Compares with the results of sacreBLEU 2.6.0 for a corpus of 200 lines, two references and two
// systems, in tests/golden/sacrebleu/expected.json.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "eval/bleu.h"
#include "eval/chrf.h"
#include "eval/report.h"
#include "eval/significance.h"
#include "eval/ter.h"

namespace fovea {
namespace {

using Json = nlohmann::json;
using MetricPointer = std::unique_ptr<TranslationMetric>;

std::string golden(const std::string& name) {
  return std::string(FOVEA_SOURCE "/tests/golden/sacrebleu/") + name;
}

Lines read_lines(const std::string& name) {
  std::ifstream file(golden(name));
  EXPECT_TRUE(file) << golden(name);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

const Json& expected() {
  static const Json json = Json::parse(std::ifstream(golden("expected.json")));
  return json;
}

std::vector<Lines> references(const std::string& names) {
  if (names == "ref") return {read_lines("ref.txt")};
  EXPECT_EQ(names, "ref+ref2");
  return {read_lines("ref.txt"), read_lines("ref2.txt")};
}

// The metric configurations of the golden file, by name.
MetricPointer metric(const std::string& name) {
  using Tokenizer = BleuTokenizer;
  using Smoothing = BleuSmoothing;
  static const std::map<std::string, BleuOptions> kBleu{
      {"bleu", {}},
      {"bleu-lc", {.lowercase = true}},
      {"bleu-intl", {.tokenize = Tokenizer::intl}},
      {"bleu-zh", {.tokenize = Tokenizer::zh}},
      {"bleu-char", {.tokenize = Tokenizer::chars}},
      {"bleu-none", {.tokenize = Tokenizer::none}},
      {"bleu-floor", {.smooth = Smoothing::floor}},
      {"bleu-addk", {.smooth = Smoothing::add_k}}};
  static const std::map<std::string, ChrfOptions> kChrf{{"chrf2", {}},
                                                        {"chrf2++", {.word_order = 2}},
                                                        {"chrf2-lc", {.lowercase = true}},
                                                        {"chrf2-ws", {.whitespace = true}},
                                                        {"chrf2-eps", {.eps_smoothing = true}},
                                                        {"chrf1", {.beta = 1}}};
  static const std::map<std::string, TercomOptions> kTer{
      {"ter", {}},
      {"ter-cs", {.case_sensitive = true}},
      {"ter-norm", {.normalized = true}},
      {"ter-np", {.no_punct = true}},
      {"ter-asian", {.normalized = true, .asian_support = true}}};
  if (kBleu.contains(name)) return std::make_unique<Bleu>(kBleu.at(name));
  if (kChrf.contains(name)) return std::make_unique<Chrf>(kChrf.at(name));
  return std::make_unique<Ter>(kTer.at(name));
}

// Replaces the version, because our signature must otherwise equal sacreBLEU's.
std::string with_our_version(std::string text) {
  size_t at = text.find("version:2.6.0");
  EXPECT_NE(at, std::string::npos) << text;
  return text.replace(at, 13, "version:fovea-" FOVEA_VERSION "|sacrebleu-compatible:2.6.0");
}

TEST(Golden, EveryCorpusScoreAndItsTextLine) {
  EXPECT_EQ(expected().at("corpus").size(), 76u);
  for (const Json& entry : expected().at("corpus")) {
    SCOPED_TRACE(entry.at("text").get<std::string>());
    MetricPointer m = metric(entry.at("metric"));
    Lines system = read_lines(entry.at("sys").get<std::string>() + ".txt");
    auto refs = references(entry.at("refs"));
    std::vector<double> sums = m->statistics(system, refs).sum();
    double score = m->score(std::span<const double>(sums));
    EXPECT_NEAR(score, entry.at("score").get<double>(), 1e-9);
    ScoreReport report{
        m->name(),
        signature(*m, {.references = refs.size(), .bootstrap = {}, .randomization = {}}),
        {score, {}, {}, {}},
        m->details(sums)};
    EXPECT_EQ(to_string(report.signature), with_our_version(entry.at("signature")));
    EXPECT_EQ(score_line(report, 4), with_our_version(entry.at("text")));
    if (auto* b = dynamic_cast<Bleu*>(m.get())) {
      BleuScore detailed = b->detailed(sums);
      EXPECT_EQ(detailed.matches, entry.at("counts").get<std::vector<double>>());
      EXPECT_EQ(detailed.totals, entry.at("totals").get<std::vector<double>>());
      EXPECT_EQ(detailed.brevity_penalty, entry.at("bp").get<double>());
      EXPECT_EQ(detailed.precisions, entry.at("precisions").get<std::vector<double>>());
    }
  }
}

TEST(Golden, EverySentenceScore) {
  Lines system = read_lines("sysA.txt");
  auto refs = references("ref");
  std::vector<std::vector<double>> columns;
  const Bleu bleu({.effective_order = true});
  const Chrf chrf;
  const Ter ter;
  const TranslationMetric* const metrics[] = {&bleu, &chrf, &ter};
  for (const TranslationMetric* metric : metrics) {
    const SegmentStatistics statistics = metric->statistics(system, refs);
    std::vector<double>& scores = columns.emplace_back();
    for (size_t s = 0; s < statistics.segments(); ++s)
      scores.push_back(metric->score(statistics.row(s)));
  }
  const Json& rows = expected().at("sentence");
  ASSERT_EQ(rows.size(), system.size());
  for (size_t s = 0; s < rows.size(); ++s)
    for (size_t m = 0; m < columns.size(); ++m)
      EXPECT_NEAR(columns[m][s], rows[s][m].get<double>(), 1e-9) << "line " << s + 1;
}

TEST(Golden, ConfidenceIntervalToTheLastBit) {
  Bleu metric;
  Lines system = read_lines("sysA.txt");
  auto statistics = metric.statistics(system, references("ref"));
  ConfidenceInterval interval = confidence_interval(bootstrap_scores(metric, statistics, 1000));
  EXPECT_EQ(interval.mean, expected().at("ci").at("mean").get<double>());
  EXPECT_EQ(interval.ci, expected().at("ci").at("ci").get<double>());
  std::vector<double> sums = statistics.sum();
  ScoreReport report{"BLEU",
                     signature(metric, {.references = 1, .bootstrap = 1000, .randomization = {}}),
                     {metric.score(std::span<const double>(sums)), {}, interval.mean, interval.ci},
                     metric.details(sums)};
  EXPECT_EQ(score_line(report, 6), with_our_version(expected().at("ci").at("text")));
}

void expect_same(const std::optional<double>& ours, const Json& theirs) {
  ASSERT_EQ(ours.has_value(), !theirs.is_null());
  if (ours) {
    EXPECT_EQ(*ours, theirs.get<double>());
  }
}

void expect_paired(PairedTest test, const std::string& key) {
  const size_t trials = test == PairedTest::bootstrap ? 1000 : 10000;
  auto refs = references("ref");
  Lines a = read_lines("sysA.txt"), b = read_lines("sysB.txt");
  for (const char* name : {"bleu", "chrf2", "ter"}) {
    MetricPointer m = metric(name);
    SCOPED_TRACE(m->name());
    auto results = paired_test(test, *m, {m->statistics(a, refs), m->statistics(b, refs)}, trials);
    const Json& theirs = expected().at("paired").at(key).at(m->name());
    ASSERT_EQ(results.size(), theirs.size());
    for (size_t s = 0; s < results.size(); ++s) {
      EXPECT_NEAR(results[s].score, theirs[s].at("score").get<double>(), 1e-9);
      expect_same(results[s].p_value, theirs[s].at("p"));
      expect_same(results[s].mean, theirs[s].at("mean"));
      expect_same(results[s].ci, theirs[s].at("ci"));
    }
    SignatureContext context;
    (test == PairedTest::bootstrap ? context.bootstrap : context.randomization) = trials;
    EXPECT_EQ(to_string(signature(*m, context)),
              with_our_version(expected().at("paired").at(key + "_sig").at(m->name())));
  }
}

TEST(Golden, PairedBootstrapToTheLastBit) { expect_paired(PairedTest::bootstrap, "bs"); }
TEST(Golden, PairedRandomizationToTheLastBit) {
  expect_paired(PairedTest::approximate_randomization, "ar");
}

std::string joined(const Characters& text) {
  std::string result;
  for (std::u32string_view word : words_of(text))
    result += (result.empty() ? "" : " ") + utf8_of(word);
  return result;
}

TEST(Golden, EveryTokenizedLine) {
  const Json& cases = expected().at("tok");
  EXPECT_GE(cases.size(), 10u);
  for (const Json& entry : cases)
    for (const char* name : {"13a", "zh", "intl"})
      EXPECT_EQ(joined(tokenize_for_bleu(bleu_tokenizer(name),
                                         characters_of(entry.at("in").get<std::string>()))),
                entry.at(name).get<std::string>());
}

}  // namespace
}  // namespace fovea

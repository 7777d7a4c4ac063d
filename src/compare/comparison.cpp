#include "compare/comparison.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <numeric>

#include "base/lines.h"
#include "decode/framed_attention.h"
#include "decode/generation_defaults.h"
#include "decode/translator.h"
#include "eval/bleu.h"
#include "eval/chrf.h"
#include "train/training_metrics.h"
#include "train/validation.h"

namespace fovea {
namespace {

constexpr int64_t kFewestSentences = 20;  // per bucket, for a meaningful BLEU
constexpr int64_t kMediumWords = 12;      // preferred length of the chosen sentence
constexpr int64_t kBatchTokens = 1024;

std::vector<int64_t> source_lengths(const TrainData& data) {
  std::vector<int64_t> lengths;
  for (const std::string& line : data.test.sources)
    lengths.push_back(cut_words(data.source, line).count());
  return lengths;
}

// Returns the index of the requested line (counted from 1), or for 0 the first line whose length is
// closest to a medium length.
size_t choose_sentence(const TrainData& data, const std::vector<int64_t>& lengths, int64_t line) {
  const auto lines = static_cast<int64_t>(lengths.size());
  check(line <= lines, ExitCode::data, "compare.sentence: line ", line, ", but the test text has ",
        lines);
  if (line > 0) return static_cast<size_t>(line - 1);
  size_t best = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0 || data.test.references[i].empty()) continue;
    if (std::abs(lengths[i] - kMediumWords) < std::abs(lengths[best] - kMediumWords)) best = i;
  }
  return best;
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  LineReader reader(path);
  for (TextLine line; reader.next(line);) lines.push_back(clean_line(line.text).text);
  return lines;
}

void read_gold(TestBench& bench, const TrainOptions& options, const CompareOptions& compare) {
  if (compare.gold.empty()) return;
  const auto paths =
      options.data.under_root({compare.gold, compare.gold_source, compare.gold_target});
  bench.gold = read_talp(paths[0], static_cast<CountedFrom>(compare.gold_from));
  const auto sources = lines_of(paths[1]), targets = lines_of(paths[2]);
  check(sources.size() == bench.gold.size() && targets.size() == bench.gold.size(), ExitCode::data,
        paths[0], " has ", bench.gold.size(), " lines, ", paths[1], " ", sources.size(), " and ",
        paths[2], " ", targets.size(), "; there must be one line of links for each pair");
  const int64_t longest = options.model.max_length - options.model.generation.added_pieces();
  for (size_t i = 0; i < sources.size(); ++i) {
    PairPieces pair{cut_words(bench.data.source, sources[i]),
                    cut_words(bench.data.target, targets[i])};
    for (const auto& [source, target] : bench.gold[i].possible)
      check(source < pair.source.count() && target < pair.target.count(), ExitCode::data, paths[0],
            ":", i + 1, ": a link to source word ", source + 1, " and target word ", target + 1,
            ", but the pair has ", pair.source.count(), " and ", pair.target.count(), " words");
    pair.source.shorten(longest);
    pair.target.shorten(longest);
    bench.gold_pairs.push_back(std::move(pair));
  }
}

// Returns the AER of the links from the mean of all attention to the source, or nothing if the
// model has no such attention.
std::optional<double> alignment_error(const Model& model, const TestBench& bench) {
  if (bench.gold.empty()) return {};
  AlignmentCounts counts;
  bool attends = false;
  for (size_t i = 0; i < bench.gold.size(); ++i)  // also pairs that attend_pairs() omits
    if (bench.gold_pairs[i].source.ids.empty() || bench.gold_pairs[i].target.ids.empty())
      counts += count_links({}, bench.gold[i]);
  attend_pairs(model, bench.gold_pairs, kBatchTokens,
               [&](size_t i, std::span<const AttentionMap> maps) {
                 if (maps.empty()) return;
                 attends = true;
                 Links links = hard_alignment(word_attention(maps, {}, bench.gold_pairs[i]));
                 std::sort(links.begin(), links.end());
                 counts += count_links(links, bench.gold[i]);
               });
  return attends ? std::optional(counts.error_rate()) : std::nullopt;
}

std::vector<double> bleu_by_length(const Lines& lines, const TestBench& bench) {
  const Bleu metric({.tokenize = bench.valid.tokenize, .lowercase = bench.valid.lowercase});
  const SegmentStatistics all = metric.statistics(lines, std::span(&bench.data.test.references, 1));
  std::vector<double> scores;
  for (const LengthBucket& bucket : bench.buckets) {
    std::vector<double> sums(all.width, 0);
    for (const size_t line : bucket.lines)
      for (size_t k = 0; k < all.width; ++k) sums[k] += all.row(line)[k];
    scores.push_back(metric.score(std::span<const double>(sums)));
  }
  return scores;
}

}  // namespace

std::vector<LengthBucket> length_buckets(const std::vector<int64_t>& lengths, int64_t step) {
  std::vector<LengthBucket> buckets;
  const int64_t longest = lengths.empty() ? 0 : *std::ranges::max_element(lengths);
  const auto filled = static_cast<int64_t>(lengths.size()) - std::ranges::count(lengths, 0);
  const int64_t fewest = std::min(kFewestSentences, filled / 10 + 1);
  for (int64_t low = 1; low <= longest; low += step) {
    LengthBucket bucket{low, low + step - 1, 0, {}};
    const bool join = !buckets.empty() && std::ssize(buckets.back().lines) < fewest;
    if (join) buckets.back().high = bucket.high;
    LengthBucket& to = join ? buckets.back() : buckets.emplace_back(std::move(bucket));
    for (size_t i = 0; i < lengths.size(); ++i)
      if (lengths[i] >= low && lengths[i] < low + step) to.lines.push_back(i);
  }
  if (buckets.size() > 1 && std::ssize(buckets.back().lines) < fewest) {
    const LengthBucket last = buckets.back();
    buckets.pop_back();
    buckets.back().high = last.high;
    buckets.back().lines.insert(buckets.back().lines.end(), last.lines.begin(), last.lines.end());
  }
  for (LengthBucket& bucket : buckets) {
    for (const size_t i : bucket.lines) bucket.mean += static_cast<double>(lengths[i]);
    bucket.mean /= static_cast<double>(std::max<size_t>(bucket.lines.size(), 1));
    bucket.high = std::min(bucket.high, longest);
  }
  return buckets;
}

TestBench make_bench(const TrainData& data, const TrainOptions& options,
                     const CompareOptions& compare) {
  check(!data.test.empty(), ExitCode::data,
        "data.test_source and data.test_target name no files: models are "
        "compared on a test text");
  const std::vector<int64_t> lengths = source_lengths(data);
  ValidOptions valid = options.valid;
  valid.tokenize = resolved(valid.tokenize, data.test.references);
  TestBench bench{data,
                  std::move(valid),
                  length_buckets(lengths, compare.length_step),
                  choose_sentence(data, lengths, compare.sentence),
                  {},
                  {},
                  search_defaults(options.model.generation, data.target)};
  bench.search.beam = bench.valid.beam;
  bench.search.length_penalty = bench.valid.length_penalty;
  read_gold(bench, options, compare);
  return bench;
}

std::optional<ModelResults> measure_model(const Model& model, const TestBench& bench,
                                          const std::function<bool()>& stop) {
  TranslateOptions how;
  how.search = bench.search;
  how.warn = false;
  how.progress = [&](int64_t) { return !stop(); };
  const Translator translator({&model}, bench.data.source, bench.data.target, how);
  ModelResults found;
  Lines lines;
  const TranslateLines translate = [&](const Model&, const Lines& sources, int64_t) {
    const auto begin = std::chrono::steady_clock::now();
    int64_t words = 0;
    for (Translation& t : translator.translate(sources)) {
      if (!t.n_best.empty()) words += std::ssize(t.n_best.front().ids);
      lines.push_back(std::move(t.text));
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    found.decode_words_per_s = static_cast<double>(words) / std::max(took.count(), 1e-9);
    return lines;
  };
  ValidOptions what = bench.valid;
  what.metrics = {"ppl", "bleu", "chrf"};
  const auto values = measure(model, bench.data.test, what, kBatchTokens, translate, stop);
  if (!values) return {};
  for (const MetricValue& metric : *values) {
    if (metric.name == "ppl") found.ppl = metric.value;
    if (metric.name == "bleu") found.bleu = metric.value;
    if (metric.name == "chrf") found.chrf = metric.value;
  }
  found.bucket_bleu = bleu_by_length(lines, bench);
  found.translation = lines[bench.sentence];
  found.aer = alignment_error(model, bench);
  return stop() ? std::nullopt : std::optional(found);
}

ChosenPair attend_chosen(const Model& model, const TestBench& bench) {
  const auto longest = static_cast<size_t>(model.max_length() - model.frame().added_pieces());
  const auto cut = [&](std::vector<int32_t> ids) {
    ids.resize(std::min(ids.size(), longest));
    return ids;
  };
  const HeldOut& test = bench.data.test;
  ChosenPair pair{cut(bench.data.source.encode(test.sources[bench.sentence])),
                  cut(bench.data.target.encode(test.references[bench.sentence])),
                  {}};
  const TextPair texts{pair.source, pair.target};
  const auto maps = attention_of(model, std::span(&texts, 1));
  pair.source.push_back(kEos);
  pair.target.push_back(kEos);
  std::ranges::copy_if(maps.front(), std::back_inserter(pair.maps),
                       [](const AttentionMap& map) { return map.kind == "cross"; });
  return pair;
}

std::optional<double> training_speed(const std::string& directory) {
  std::vector<double> speeds;
  try {
    for (const MetricsLine& line : read_metrics(directory + "/metrics.jsonl"))
      if (line.kind == "train")
        if (const auto speed = line.value("words_per_s"); speed && std::isfinite(*speed))
          speeds.push_back(*speed);
  } catch (const Error&) {
    return {};  // an unreadable log must not stop the comparison
  }
  if (speeds.empty()) return {};
  const auto middle = speeds.begin() + std::ssize(speeds) / 2;
  std::nth_element(speeds.begin(), middle, speeds.end());
  return *middle;
}

}  // namespace fovea

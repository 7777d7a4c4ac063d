#include "decode/search.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "models/model_config.h"
#include "ops/matmul.h"
#include "support/network_settings.h"
#include "support/table_model.h"
#include "temporary.h"
#include "text/batch.h"

namespace fovea {
namespace {

using Words = TableModel::Words;

std::vector<std::vector<Hypothesis>> search_all(const Model& model, const PackedSentences& sources,
                                                const SearchOptions& options,
                                                std::vector<int64_t> numbers = {}) {
  if (numbers.empty()) {
    numbers.resize(static_cast<size_t>(sources.sentences()));
    std::iota(numbers.begin(), numbers.end(), 0);
  }
  const Model* models[] = {&model};
  return search(models, {sources.ids, sources.offsets}, numbers, options);
}

PackedSentences one_source(const Words& words) {
  PackedSentences packed;
  packed.add(words, PackedSentences::Mark::eos_after);
  return packed;
}

// A model whose scores come from a hash of source and prefix.
TableModel random_model(uint64_t seed, ElementType type = ElementType::f32) {
  return {12, 40,
          [seed](const Words& source, const Words& prefix) {
            uint64_t h = seed;
            for (const int32_t w : source) h = h * 1000003 + static_cast<uint64_t>(w);
            for (const int32_t w : prefix) h = h * 999983 + static_cast<uint64_t>(w);
            Random random(h);
            TableModel::Row row(12);
            for (double& x : row) x = 2 * random.normal();
            row[kEos] += 0.15 * static_cast<double>(prefix.size());
            return row;
          },
          type};
}

std::vector<Words> random_sources(int64_t n) {
  Random random(3);
  std::vector<Words> sources(static_cast<size_t>(n));
  for (Words& s : sources) {
    s.resize(1 + random.below(9));
    for (int32_t& w : s) w = static_cast<int32_t>(4 + random.below(8));
  }
  return sources;
}

void expect_same(const std::vector<Hypothesis>& a, const std::vector<Hypothesis>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].words, b[i].words);
    EXPECT_EQ(a[i].log_probs, b[i].log_probs);
    EXPECT_EQ(a[i].score, b[i].score);  // to the last bit
  }
}

// Words of the prefix have the model's probabilities, even if these are low.
TEST(Search, EveryTranslationBeginsWithThePrefix) {
  const TableModel model = random_model(11);
  PackedSentences sources;
  for (const Words& s : random_sources(80)) sources.add(s, PackedSentences::Mark::eos_after);
  const Words prefix{kUnk, 5, 11};
  for (const bool sampled : {false, true}) {
    SearchOptions options{.beam = 4, .n_best = 3, .max_length = 2, .prefix = prefix};
    if (sampled) options.sampling.emplace();
    for (const int64_t longest : {2, 30}) {
      options.max_length = longest;
      const auto found = search_all(model, sources, options);
      for (const auto& list : found)
        for (const Hypothesis& h : list) {
          ASSERT_GT(h.words.size(), prefix.size());
          EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), h.words.begin()));
          EXPECT_LE(h.words.size(), longest == 2 ? 4u : 30u);  // the prefix and </s>
          EXPECT_NEAR(h.log_prob, std::accumulate(h.log_probs.begin(), h.log_probs.end(), 0.0),
                      1e-4);
        }
    }
  }
  const Hypothesis forced =
      search_all(model, one_source({4, 5}), {.prefix = prefix}).front().front();
  Words in{kBos}, out = forced.words;
  in.insert(in.end(), out.begin(), out.end() - 1);
  const Words from{4, 5, kEos};
  const std::vector<int32_t> from_offsets{0, 3}, offsets{0, static_cast<int32_t>(in.size())};
  const auto scores =
      model.loss({{from, from_offsets}, {in, offsets}, out}, 0).log_likelihood.values();
  for (size_t i = 0; i < scores.size(); ++i) EXPECT_NEAR(forced.log_probs[i], scores[i], 1e-5);
  EXPECT_THROW(search_all(model, one_source({4}), {.prefix = Words(40, 5)}), Error);
}

TEST(Search, EarlyStopSavesStepsAndKeepsResults) {
  for (const double alpha : {-0.5, 0.0, 0.6, 1.0, 2.0})
    for (const int64_t n_best : {1, 3}) {
      const TableModel model = random_model(11);
      SearchOptions options{.beam = 4, .n_best = n_best, .length_penalty = alpha};
      int64_t work[2];
      std::vector<std::vector<Hypothesis>> found[2];
      for (const bool early : {false, true}) {
        options.early_stop = early;
        model.steps = 0;
        for (const Words& s : random_sources(60))
          found[early].push_back(search_all(model, one_source(s), options).front());
        work[early] = model.steps;
      }
      for (size_t i = 0; i < found[0].size(); ++i) expect_same(found[0][i], found[1][i]);
      EXPECT_LE(work[1], work[0]);
      EXPECT_TRUE(alpha >= 1 || work[1] < work[0]);
    }
}

TEST(Search, BeamOneIsGreedy) {
  const TableModel model = random_model(5, ElementType::f64);
  for (const Words& source : random_sources(40)) {
    const PackedSentences packed = one_source(source);
    const auto found = search_all(model, packed, {.beam = 1}).front().front();
    Words prefix{kBos}, words;
    auto state = model.start({packed.ids, packed.offsets});
    const auto limit = 2 * std::ssize(source) + 10;
    while (words.empty() || words.back() != kEos) {
      const auto row = model.step(*state, std::span(&prefix.back(), 1)).values();
      int32_t best = kEos;
      for (int32_t w = kEos; w < 12; ++w)
        if (w != kUnk && row[w] > row[best] && std::ssize(words) + 1 < limit) best = w;
      words.push_back(best);
      prefix.push_back(best);
    }
    EXPECT_EQ(found.words, words);
  }
}

TEST(Search, ListsAreSortedAndBeginWithTheBest) {
  const TableModel model = random_model(6);
  for (const Words& source : random_sources(40)) {
    const auto wide = search_all(model, one_source(source), {.beam = 8, .n_best = 8}).front();
    ASSERT_EQ(wide.size(), 8u);
    for (size_t i = 0; i < wide.size(); ++i) {
      EXPECT_TRUE(i == 0 || ranks_before(wide[i - 1], wide[i]));
      EXPECT_EQ(wide[i].words.back(), kEos);
      for (const int32_t w : wide[i].words) EXPECT_TRUE(w == kEos || w >= kSpecials);
      const double sum = std::accumulate(wide[i].log_probs.begin(), wide[i].log_probs.end(), 0.0);
      EXPECT_NEAR(sum, wide[i].log_prob, 1e-4);
    }
    const auto best = search_all(model, one_source(source), {.beam = 8}).front();
    EXPECT_EQ(best.front().words, wide.front().words);
  }
}

// Five words at four positions make 625 prefixes: a beam that holds them all is exact.
TEST(Search, WideBeamIsExactAndBeatsGreedy) {
  const TableModel model(8, 6, [](const Words& source, const Words& prefix) {
    Random random(static_cast<uint64_t>(source.front() * 64 + prefix.back()), prefix.size());
    TableModel::Row row(8);
    for (double& x : row) x = 1.5 * random.normal();
    return row;
  });
  int better = 0;
  for (int32_t s = 4; s < 40; ++s) {
    const SearchOptions wide{.beam = 1024, .length_penalty = 0, .max_length = 5};
    SearchOptions greedy = wide;
    greedy.beam = 1;
    const double best = search_all(model, one_source({s}), wide).front().front().score;
    const double first = search_all(model, one_source({s}), greedy).front().front().score;
    EXPECT_GE(best, first);
    better += best > first;
  }
  EXPECT_GT(better, 0);
}

TEST(Search, BatchAndOrderDoNotMatter) {
  const TableModel model = random_model(8);
  const std::vector<Words> sources = random_sources(150);
  for (const bool sampled : {false, true}) {
    SearchOptions options{.beam = 4, .n_best = 3};
    if (sampled) options.sampling = SamplerOptions{.temperature = 1.3, .top_k = 6, .top_p = 0.9};
    std::vector<std::vector<Hypothesis>> alone;
    for (size_t i = 0; i < sources.size(); ++i)
      alone.push_back(
          search_all(model, one_source(sources[i]), options, {static_cast<int64_t>(i)}).front());
    std::vector<int64_t> order(sources.size());
    std::iota(order.begin(), order.end(), 0);
    for (const size_t size : {2u, 7u, 64u, 150u}) {
      Random(size).shuffle(order);
      for (size_t first = 0; first < order.size(); first += size) {
        const auto members = std::span(order).subspan(first, std::min(size, order.size() - first));
        const auto found = search_all(model, pack_source(sources, members), options,
                                      {members.begin(), members.end()});
        for (size_t i = 0; i < members.size(); ++i) expect_same(found[i], alone[members[i]]);
      }
    }
  }
}

// Threads share the sentences (Note [Shares]); callbacks cover all sentences, one call at a time.
TEST(Search, ThreadsDoNotMatter) {
  const TableModel model = random_model(7);
  PackedSentences packed;
  for (const Words& source : random_sources(3))
    packed.add(source, PackedSentences::Mark::eos_after);
  const int threads = omp_get_max_threads();
  std::vector<std::vector<Hypothesis>> alone;
  for (const int n : {1, 2, 3, 4, 16}) {
    omp_set_num_threads(n);
    std::vector<int> steps(3), ended(3);
    std::atomic<int> at_once = 0;
    SearchOptions options{.beam = 3, .n_best = 3};
    options.each_step = [&](int64_t number, const Beam&) {
      EXPECT_EQ(++at_once, 1);
      ++steps[static_cast<size_t>(number)];
      --at_once;
    };
    options.watch = [&](int64_t number, const Beam&) { ++ended[static_cast<size_t>(number)]; };
    const auto found = search_all(model, packed, options);
    if (n == 1) alone = found;
    for (size_t i = 0; i < alone.size(); ++i) {
      expect_same(found[i], alone[i]);
      EXPECT_GT(steps[i], 0);
      EXPECT_EQ(ended[i], 1);
    }
  }
  omp_set_num_threads(threads);
}

// The same with real weights, which the first thread that needs them packs for all threads.
TEST(Search, ThreadsDoNotMatterToModels) {
  ModelConfig config;
  config.encoder_layers = config.decoder_layers = 2;
  config.size = 32, config.max_length = 30;
  config.source_words = config.target_words = 12;
  PackedSentences packed;
  for (const Words& source : random_sources(40))
    packed.add(source, PackedSentences::Mark::eos_after);
  const int threads = omp_get_max_threads();
  for (const char* type : {"transformer", "recurrent"})
    for (const Precision precision : {Precision::f32, Precision::bf16, Precision::int8}) {
      if (precision != Precision::int8 && !__builtin_cpu_supports("avx512f")) continue;
      choose_network(config, type);
      if (config.as<TransformerConfig>())
        transformer_of(config).heads = 2, transformer_of(config).inner = 64;
      const PrecisionScope scope(precision);
      std::vector<std::vector<Hypothesis>> alone;
      for (const int n : {1, 2, 4}) {
        omp_set_num_threads(n);
        const auto model = make_model(config, 3);
        if (precision == Precision::f32) model->freeze_for_inference();
        const auto found = search_all(*model, packed, {.beam = 3});
        if (n == 1) alone = found;
        for (size_t i = 0; i < alone.size(); ++i) expect_same(found[i], alone[i]);
      }
    }
  omp_set_num_threads(threads);
}

TEST(Search, SamplingFollowsTheSeed) {
  const TableModel model = random_model(9);
  const PackedSentences sources =
      pack_source(random_sources(20), std::vector<int64_t>{0, 1, 2, 3, 4});
  SearchOptions options{.n_best = 4, .sampling = SamplerOptions{.seed = 1}};
  const auto first = search_all(model, sources, options),
             again = search_all(model, sources, options);
  options.sampling->seed = 2;
  const auto other = search_all(model, sources, options);
  bool differs = false;
  for (size_t i = 0; i < first.size(); ++i) {
    ASSERT_EQ(first[i].size(), 4u);
    expect_same(first[i], again[i]);
    differs |= first[i].front().words != other[i].front().words;
  }
  EXPECT_TRUE(differs);
}

TEST(Search, SamplingFollowsTheDistribution) {
  const std::vector<double> scores{0, 0, std::log(0.5), 5, std::log(0.3), std::log(0.2)};
  const std::vector<int32_t> banned{kPad, kBos, kUnk};
  const auto counts = [&](const SamplerOptions& options) {
    Sampler sampler(options);
    std::vector<int> count(6, 0);
    for (int64_t i = 0; i < 20000; ++i) ++count[sampler.draw(scores, 0, banned, {i, 0, 3}).word];
    return count;
  };
  const auto plain = counts({});
  EXPECT_EQ(plain[0] + plain[1] + plain[3], 0);
  EXPECT_NEAR(plain[2], 10000, 300);
  EXPECT_NEAR(plain[4], 6000, 300);
  EXPECT_NEAR(plain[5], 4000, 300);
  const auto sharp = counts({.temperature = 0.001});
  EXPECT_EQ(sharp[2], 20000);
  const auto two = counts({.top_k = 2});
  EXPECT_EQ(two[5], 0);
  EXPECT_NEAR(two[2], 12500, 300);
  const auto nucleus = counts({.top_p = 0.75});
  EXPECT_EQ(nucleus[5], 0);
  EXPECT_NEAR(nucleus[4], 7500, 300);
}

TEST(Search, LengthLimitEndsEveryHypothesis) {
  const TableModel never(8, 20, [](const Words&, const Words&) {
    TableModel::Row row(8, 1.0);
    row[kEos] = -50;
    return row;
  });
  const auto cut = search_all(never, one_source({5}), {.beam = 3, .n_best = 3, .max_length = 7});
  for (const Hypothesis& h : cut.front()) {
    EXPECT_EQ(h.words.size(), 7u);
    EXPECT_EQ(h.words.back(), kEos);
  }
  const auto longest = search_all(never, one_source({5, 5, 5, 5, 5, 5, 5, 5}), {});
  EXPECT_EQ(longest.front().front().words.size(), 20u);  // the model's limit
}

TEST(Search, EnsembleAveragesProbabilities) {
  const auto fixed = [](double four, double five) {
    return TableModel(6, 8, [=](const Words&, const Words& prefix) {
      const bool end = prefix.size() > 1;
      TableModel::Row row(6, -1e9);
      row[kEos] = end ? 0 : -1e9;
      row[4] = end ? -1e9 : std::log(four);
      row[5] = end ? -1e9 : std::log(five);
      return row;
    });
  };
  const TableModel a = fixed(0.6, 0.4), b = fixed(0.1, 0.9);
  const Model* models[] = {&a, &b};
  const PackedSentences source = one_source({5});
  const int64_t number = 0;
  const auto found = search(models, {source.ids, source.offsets}, std::span(&number, 1),
                            {.beam = 2, .n_best = 2, .length_penalty = 0})
                         .front();
  EXPECT_EQ(found[0].words, (Words{5, kEos}));
  EXPECT_NEAR(found[0].log_prob, std::log(0.65), 1e-9);
  EXPECT_NEAR(found[1].log_prob, std::log(0.35), 1e-9);
}

TEST(Search, CoverageLiftsLongerTranslations) {
  const TableModel model(8, 20, [](const Words&, const Words& prefix) {
    TableModel::Row row(8, -30.0);
    row[kEos] = std::log(0.6);
    row[4] = prefix.size() > 4 ? -30 : std::log(0.4);
    return row;
  });
  const PackedSentences source = one_source({4, 5, 6});
  SearchOptions options{.beam = 4, .n_best = 2, .length_penalty = 0};
  EXPECT_EQ(search_all(model, source, options).front().front().words.size(), 1u);
  options.coverage_penalty = 1;
  const auto found = search_all(model, source, options).front();
  EXPECT_EQ(found.size(), 2u);
  EXPECT_EQ(found.front().words.size(), 3u);  // three rows cover three source words
}

// A model whose attention is always on the first source word.
struct FirstWordModel : TableModel {
  using TableModel::TableModel;
  std::vector<std::vector<AttentionMap>> attention(const TokenBatch& source,
                                                   const TokenBatch& target_in) const override {
    auto all = TableModel::attention(source, target_in);
    for (auto& maps : all)
      for (AttentionMap& map : maps)
        for (int64_t t = 0; t < map.rows; ++t)
          for (int64_t j = 0; j < map.cols; ++j) map.weights[t * map.cols + j] = j == 0;
    return all;
  }
};

TEST(Search, CoverageOfAnEnsembleIsTheMeanOfItsModels) {
  const auto uniform = [](const Words&, const Words&) { return TableModel::Row(8, 0.0); };
  const TableModel diagonal(8, 20, uniform);
  const FirstWordModel first(8, 20, uniform);
  const Words source{4, 5, 6, kEos};
  const auto scores = [&](std::vector<const Model*> models) {
    std::vector<Hypothesis> hypotheses(2);
    hypotheses[0].words = {4, 5, kEos};
    hypotheses[1].words = {4, kEos};
    add_coverage(models, source, 0.5, hypotheses);
    std::ranges::sort(hypotheses, {}, [](const Hypothesis& h) { return h.words.size(); });
    return std::pair(hypotheses[0].score, hypotheses[1].score);
  };
  const auto a = scores({&diagonal}), b = scores({&first}), both = scores({&diagonal, &first});
  EXPECT_NE(a.first, b.first);
  EXPECT_NEAR(both.first, (a.first + b.first) / 2, 1e-12);
  EXPECT_NEAR(both.second, (a.second + b.second) / 2, 1e-12);
  EXPECT_EQ(both, scores({&first, &diagonal}));
}

TEST(Search, ErrorsHaveNumbersWithoutExponents) {
  SearchOptions options{.max_length = -5};
  EXPECT_NE(message_of(ExitCode::usage, [&] { options.check(); })
                .find("`max_length`: -5 is not between 0 and 1000000"),
            std::string::npos);
}

// The common prefix at each step is a prefix of the best translation and never becomes shorter. In
// greedy search it has every word.
TEST(Search, CommonPrefixOnlyGrows) {
  const TableModel model = random_model(11);
  PackedSentences sources;
  for (const Words& s : random_sources(30)) sources.add(s, PackedSentences::Mark::eos_after);
  for (const int64_t beam : {1, 2, 5})
    for (const double penalty : {0.0, 1.0}) {
      std::vector<std::vector<Words>> prefixes(30);
      SearchOptions options{.beam = beam, .length_penalty = penalty};
      options.each_step = [&](int64_t number, const Beam& b) {
        prefixes[static_cast<size_t>(number)].push_back(b.common_prefix());
      };
      const auto found = search_all(model, sources, options);
      size_t early = 0;
      for (size_t i = 0; i < prefixes.size(); ++i) {
        const Words& best = found[i].front().words;
        size_t before = 0;
        for (size_t step = 0; step < prefixes[i].size(); ++step) {
          const Words& words = prefixes[i][step];
          ASSERT_LE(words.size(), best.size());
          EXPECT_TRUE(std::equal(words.begin(), words.end(), best.begin())) << i << " " << step;
          EXPECT_GE(words.size(), before);
          if (beam == 1) {
            EXPECT_EQ(words.size(), step + 1);
          }
          before = words.size();
          early += step + 1 < prefixes[i].size() && before > 0;
        }
        EXPECT_EQ(prefixes[i].back(), best);
      }
      EXPECT_GT(early, 0u) << "words before the end";
    }
}

// An unwanted sentence leaves at the next step; the results of the others do not change.
TEST(Search, UnwantedSentencesLeave) {
  const TableModel model = random_model(5);
  PackedSentences sources;
  for (const Words& s : random_sources(6)) sources.add(s, PackedSentences::Mark::eos_after);
  SearchOptions options{.beam = 3, .n_best = 2};
  const auto all = search_all(model, sources, options);
  const int64_t whole = model.steps;
  std::vector<int> asked(6, 0);
  options.wanted = [&](int64_t number) { return ++asked[number] <= 1 || number % 2 == 1; };
  const auto some = search_all(model, sources, options);
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % 2 == 1)
      expect_same(some[i], all[i]);
    else
      EXPECT_TRUE(some[i].empty());
  }
  EXPECT_LT(model.steps - whole, whole);
  options.wanted = [](int64_t) { return false; };
  for (const auto& list : search_all(model, sources, options)) EXPECT_TRUE(list.empty());
}

TEST(Search, RefusesScoresThatAreNotFinite) {
  const TableModel broken(
      8, 20, [](const Words&, const Words&) { return TableModel::Row(8, std::nan("")); });
  EXPECT_THROW(search_all(broken, one_source({5}), {}), Error);
  PackedSentences several;
  for (const Words& source : random_sources(5))
    several.add(source, PackedSentences::Mark::eos_after);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(3);
  EXPECT_THROW(search_all(broken, several, {}), Error);
  omp_set_num_threads(threads);
}

TEST(SearchOptions, RefusesValuesOutOfRange) {
  EXPECT_NO_THROW(SearchOptions{}.check());
  EXPECT_THROW((SearchOptions{.beam = 0}.check()), Error);
  EXPECT_THROW((SearchOptions{.beam = 2, .n_best = 3}.check()), Error);
  EXPECT_THROW((SearchOptions{.sampling = SamplerOptions{.temperature = 0}}.check()), Error);
  EXPECT_THROW((SearchOptions{.sampling = SamplerOptions{.top_p = 0}}.check()), Error);
}

}  // namespace
}  // namespace fovea

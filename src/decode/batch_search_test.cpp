#include "decode/batch_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/random.h"
#include "models/model_config.h"
#include "ops/matmul.h"
#include "support/network_settings.h"
#include "support/table_model.h"
#include "text/batch.h"

namespace fovea {
namespace {

using Words = TableModel::Words;
using Lists = std::map<int64_t, std::vector<Hypothesis>>;  // by number

// A model whose scores come from a hash of source and prefix.
template <class Table = TableModel>
Table random_model() {
  return {12, 40,
          [](const Words& source, const Words& prefix) {
            uint64_t h = 11;
            for (const int32_t w : source) h = h * 1000003 + static_cast<uint64_t>(w);
            for (const int32_t w : prefix) h = h * 999983 + static_cast<uint64_t>(w);
            Random random(h);
            TableModel::Row row(12);
            for (double& x : row) x = 2 * random.normal();
            row[2] += 0.15 * static_cast<double>(prefix.size());
            return row;
          },
          ElementType::f32};
}

std::unique_ptr<Model> small_transformer() {
  ModelConfig c;
  c.encoder_layers = c.decoder_layers = 2;
  auto& own = transformer_of(c);
  c.size = 32, own.heads = 2, own.inner = 48, c.max_length = 30;
  c.source_words = c.target_words = 12;
  return make_model(c, 3, ElementType::f32);
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

void add(BatchSearch& search, const std::vector<Words>& sources, int64_t first, int64_t count) {
  PackedSentences packed;
  std::vector<int64_t> numbers;
  for (int64_t i = first; i < first + count; ++i) {
    packed.add(sources[static_cast<size_t>(i)], PackedSentences::Mark::eos_after);
    numbers.push_back(i);
  }
  search.add({packed.ids, packed.offsets}, numbers);
}

// Adds `at_once` of the sources every `pause` steps.
Lists search_lists(const Model& model, const std::vector<Words>& sources,
                   const SearchOptions& options, int64_t at_once, int pause) {
  const Model* const models[] = {&model};
  BatchSearch search(models, options);
  Lists lists;
  int64_t added = 0;
  for (int step = 0; !search.empty() || added < std::ssize(sources); ++step) {
    if (added < std::ssize(sources) && (step % pause == 0 || search.empty())) {
      EXPECT_TRUE(search.open());
      const int64_t count = std::min(at_once, std::ssize(sources) - added);
      add(search, sources, added, count);
      added += count;
    }
    for (SearchResult& result : search.step()) {
      EXPECT_EQ(result.index, result.number) << "in the order in which they were added";
      EXPECT_TRUE(lists.emplace(result.number, std::move(result.n_best)).second);
    }
  }
  return lists;
}

void expect_same(const Lists& a, const Lists& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [number, list] : a) {
    const auto& other = b.at(number);
    ASSERT_EQ(list.size(), other.size());
    for (size_t i = 0; i < list.size(); ++i) {
      EXPECT_EQ(list[i].words, other[i].words);
      EXPECT_EQ(list[i].log_probs, other[i].log_probs);
      EXPECT_EQ(list[i].score, other[i].score);  // to the last bit
    }
  }
}

TEST(BatchSearch, SentencesThatJoinHaveTheSameResultsAsAlone) {
  const std::vector<Words> sources = random_sources(40);
  const TableModel model = random_model();
  for (const double coverage : {0.0, 0.3}) {
    SearchOptions options{.beam = 3, .n_best = 2, .coverage_penalty = coverage, .prefix = {5}};
    const Lists alone = search_lists(model, sources, options, 1, 1000);
    expect_same(search_lists(model, sources, options, 1, 1), alone);
    expect_same(search_lists(model, sources, options, 4, 3), alone);
    expect_same(search_lists(model, sources, options, 40, 1), alone);
  }
}

// Sums in int8 are integers, so that results have the same bits on every processor.
TEST(BatchSearch, SentencesThatJoinATransformerHaveTheSameResults) {
  const std::vector<Words> sources = random_sources(24);
  const auto model = small_transformer();
  const PrecisionScope scope(Precision::int8);
  const SearchOptions options{.beam = 3, .n_best = 2};
  const Lists alone = search_lists(*model, sources, options, 1, 1000);
  expect_same(search_lists(*model, sources, options, 1, 2), alone);
  expect_same(search_lists(*model, sources, options, 5, 4), alone);
}

TEST(BatchSearch, UnwantedSentencesLeaveAndOthersStay) {
  const std::vector<Words> sources = random_sources(12);
  const TableModel model = random_model();
  SearchOptions options{.beam = 2};
  Lists wanted = search_lists(model, sources, options, 1, 1000);
  options.wanted = [](int64_t number) { return number % 3 != 1; };
  for (auto& [number, list] : wanted)
    if (!options.wanted(number)) list.clear();
  expect_same(search_lists(model, sources, options, 2, 1), wanted);
}

TEST(BatchSearch, IsClosedIfTheModelCannotExtendABatch) {
  const auto model = random_model<ClosedTableModel>();
  const Model* const models[] = {&model};
  const SearchOptions options;
  BatchSearch search(models, options);
  const std::vector<Words> sources = random_sources(2);
  EXPECT_TRUE(search.open());
  add(search, sources, 0, 1);
  search.step();
  EXPECT_FALSE(search.open());
  while (!search.empty()) search.step();
  EXPECT_TRUE(search.open());
}

// Each sample of a sentence is a row, and the rows of a batch of samples must stay complete.
TEST(BatchSearch, IsClosedWhileSampling) {
  const TableModel model = random_model();
  const Model* const models[] = {&model};
  SearchOptions options{.n_best = 3};
  options.sampling = SamplerOptions{};
  BatchSearch search(models, options);
  add(search, random_sources(2), 0, 2);
  EXPECT_FALSE(search.open());
  size_t lists = 0;
  while (!search.empty())
    for (const SearchResult& result : search.step()) {
      EXPECT_EQ(result.n_best.size(), 3u);
      ++lists;
    }
  EXPECT_EQ(lists, 2u);
}

}  // namespace
}  // namespace fovea

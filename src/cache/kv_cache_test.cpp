#include "cache/kv_cache.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "ops/attention.h"
#include "ops/running_average.h"
#include "ops/shape.h"

namespace fovea {
namespace {

constexpr int64_t kSize = 6, kHeads = 2;

std::vector<double> draw(Random& random, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  for (double& v : values) v = random.normal();
  return values;
}

Tensor matrix(const std::vector<double>& values, int64_t cols) {
  return Tensor::of({std::ssize(values) / cols, cols}, values, ElementType::f64);
}

SentenceOffsets sentence(int64_t words) {
  return SentenceOffsets::of(std::vector<int32_t>{0, static_cast<int32_t>(words)}, Cpu{});
}

// A row and the words that this test has added to it.
struct Row {
  Tensor source;                // [words, 2D]
  std::vector<double> history;  // [words, 3D]
};

int64_t words_of(const Row& row) { return std::ssize(row.history) / (3 * kSize); }

// Distance scores for up to 100 words.
Tensor distance_scores() {
  Random random(9);
  return matrix(draw(random, 199 * kHeads), kHeads);
}

// Compares with attention over all words of the row at once.
void expect_attended(const Row& row, std::span<const double> q, std::span<const double> own,
                     std::span<const double> of_source) {
  const int64_t words = words_of(row), source_words = row.source.size(0);
  const Tensor all = self_attention(matrix(row.history, 3 * kSize), sentence(words),
                                    {kHeads, AttentionMask::causal, {}, distance_scores()});
  const Tensor to_source =
      cross_attention(matrix({q.begin(), q.end()}, kSize), row.source, sentence(1),
                      sentence(source_words), {kHeads, AttentionMask::none, {}});
  for (int64_t j = 0; j < kSize; ++j) {
    EXPECT_NEAR(own[j], all.values()[(words - 1) * kSize + j], 1e-12);
    EXPECT_NEAR(of_source[j], to_source.values()[j], 1e-12);
  }
}

// New sentences, with the row of each.
struct NewSentences {
  Tensor source;
  std::vector<int32_t> offsets{0};
  std::vector<Row> rows;

  NewSentences(const std::vector<int32_t>& words, Random& random) {
    for (const int32_t count : words) offsets.push_back(offsets.back() + count);
    source = matrix(draw(random, offsets.back() * 2 * kSize), 2 * kSize);
    for (size_t i = 0; i < words.size(); ++i)
      rows.push_back({source.window(offsets[i], words[i]), {}});
  }
};

// Repeats and drops rows after each step, so that they move to larger matrices several times. If
// `every` is positive, new sentences join at every `every`-th step.
void expect_histories(int every) {
  Random random(5);
  const auto memory = decoder_memory({1, kSize, kHeads}, Cpu{});
  const NewSentences first({3, 1, 5}, random);
  memory->start({first.source}, first.offsets);
  std::vector<Row> rows = first.rows;
  for (int step = 0; step < 60; ++step) {
    if (every > 0 && step % every == every - 1) {
      const NewSentences more({1 + step % 4, 2}, random);
      memory->join({more.source}, more.offsets);
      rows.insert(rows.end(), more.rows.begin(), more.rows.end());
    }
    const auto count = static_cast<int64_t>(rows.size());
    const std::vector<double> qkv = draw(random, count * 3 * kSize),
                              q = draw(random, count * kSize);
    const std::vector<int32_t> words(rows.size(), 7);
    std::vector<double> places, own, of_source;
    int64_t longest = 0;
    for (const Row& row : rows) {
      longest = std::max(longest, words_of(row));
      places.push_back(static_cast<double>(std::min<int64_t>(words_of(row), 50)));
    }
    EXPECT_EQ(memory->steps(), longest);
    const auto place = static_cast<int32_t>(std::min<int64_t>(longest, 50));
    memory->step({words, place, {}}, [&](const DecoderMemory::Rows& in) {
      EXPECT_EQ(in.words.values(), std::vector<double>(rows.size(), 7));
      EXPECT_EQ(in.places.values(), places);
      const Tensor y = memory->attend_words(0, matrix(qkv, 3 * kSize), distance_scores());
      own = y.values();
      of_source = memory->attend_source(0, matrix(q, kSize)).values();
      return y;
    });
    for (int64_t r = 0; r < count; ++r) {
      Row& row = rows[static_cast<size_t>(r)];
      const auto begin = qkv.begin() + r * 3 * kSize;
      row.history.insert(row.history.end(), begin, begin + 3 * kSize);
      const auto part = [&](const std::vector<double>& all) {
        return std::span(all).subspan(static_cast<size_t>(r * kSize), kSize);
      };
      expect_attended(row, part(q), part(own), part(of_source));
    }
    std::vector<int32_t> parents(1 + random.below(6));
    std::vector<Row> next;
    for (int32_t& parent : parents) {
      parent = static_cast<int32_t>(random.below(rows.size()));
      next.push_back(rows[static_cast<size_t>(parent)]);
    }
    memory->reorder(parents);
    rows = std::move(next);
    EXPECT_EQ(memory->rows(), std::ssize(rows));
  }
}

TEST(DecoderMemory, AttendsToTheHistoryOfEachRow) { expect_histories(0); }

TEST(DecoderMemory, NewSentencesCanJoin) {
  for (const int every : {1, 3, 7}) expect_histories(every);
}

// The recurrent state of each row follows the rows of a search.
TEST(DecoderMemory, AveragesTheHistoryOfEachRow) {
  constexpr int64_t kState = 5;
  struct History {
    std::vector<double> f, x;  // [words, kState]
  };
  Random random(7);
  const auto memory = decoder_memory({1, kSize, kHeads, kState}, Cpu{});
  const NewSentences first({3, 1}, random);
  memory->start({first.source}, first.offsets);
  std::vector<History> rows(2);
  for (int step = 0; step < 40; ++step) {
    if (step % 9 == 8) {
      const NewSentences more({2}, random);
      memory->join({more.source}, more.offsets);
      rows.emplace_back();
    }
    const auto count = std::ssize(rows);
    std::vector<double> f = draw(random, count * kState), x = draw(random, count * kState), c;
    for (double& v : f) v = 1 / (1 + std::exp(-v));
    const std::vector<int32_t> words(rows.size(), 7);
    memory->step({words, 0, {}}, [&](const DecoderMemory::Rows&) {
      const Tensor y = memory->average_words(0, matrix(f, kState), matrix(x, kState));
      c = y.values();
      return y;
    });
    for (int64_t r = 0; r < count; ++r) {
      History& row = rows[static_cast<size_t>(r)];
      row.f.insert(row.f.end(), f.begin() + r * kState, f.begin() + (r + 1) * kState);
      row.x.insert(row.x.end(), x.begin() + r * kState, x.begin() + (r + 1) * kState);
      const int64_t n = std::ssize(row.f) / kState;
      const auto all =
          running_average(matrix(row.f, kState), matrix(row.x, kState), sentence(n)).values();
      for (int64_t j = 0; j < kState; ++j)
        EXPECT_NEAR(c[r * kState + j], all[(n - 1) * kState + j], 1e-12);
    }
    std::vector<int32_t> parents(1 + random.below(5));
    std::vector<History> next;
    for (int32_t& parent : parents) {
      parent = static_cast<int32_t>(random.below(rows.size()));
      next.push_back(rows[static_cast<size_t>(parent)]);
    }
    memory->reorder(parents);
    rows = std::move(next);
  }
}

TEST(DecoderMemory, CanStartAgain) {
  Random random(6);
  const auto memory = decoder_memory({1, kSize, kHeads}, Cpu{});
  const Tensor source = matrix(draw(random, 2 * 2 * kSize), 2 * kSize),
               qkv = matrix(draw(random, 3 * kSize), 3 * kSize);
  std::vector<double> first;
  for (int time = 0; time < 2; ++time) {
    memory->start({source}, std::vector<int32_t>{0, 2});
    const Tensor y = memory->step({std::vector<int32_t>{3}, 0, {}},
                                  [&](const auto&) { return memory->attend_words(0, qkv, {}); });
    if (time == 0) first = y.values();
    EXPECT_EQ(y.values(), first);
    memory->forget();
  }
}

}  // namespace
}  // namespace fovea

#include "ops/decoder_memory.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "ops/attention.h"
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
  return Tensor::of({std::ssize(values) / cols, cols}, values, Type::f64);
}

Packing sentence(int64_t words) {
  return Packing::of(std::vector<int32_t>{0, static_cast<int32_t>(words)}, Cpu{});
}

// Every row against attention over all words of its history at once, kept here.
TEST(DecoderMemory, AttendsToTheHistoryOfEachRow) {
  Random random(5);
  const std::vector<int32_t> offsets{0, 3, 4, 9};
  const Tensor source = matrix(draw(random, 9 * 2 * kSize), 2 * kSize);
  const auto memory = decoder_memory({1, kSize, kHeads}, Cpu{});
  memory->start({source}, offsets);

  struct Row {
    int32_t sentence;
    std::vector<double> history;  // [words, 3D]
  };
  std::vector<Row> rows{{0, {}}, {1, {}}, {2, {}}};
  for (int step = 0; step < 40; ++step) {  // rows move to larger matrices several times
    const auto count = static_cast<int64_t>(rows.size());
    const std::vector<double> qkv = draw(random, count * 3 * kSize),
                              q = draw(random, count * kSize);
    const std::vector<int32_t> words(rows.size(), 7);
    Tensor own, of_source;
    memory->step({words, step, {}}, [&](const DecoderMemory::Rows& in) {
      EXPECT_EQ(in.words.values(), std::vector<double>(rows.size(), 7));
      EXPECT_EQ(in.places.values(), std::vector<double>(rows.size(), step));
      own = memory->attend_words(0, matrix(qkv, 3 * kSize));
      of_source = memory->attend_source(0, matrix(q, kSize));
      return own;
    });
    EXPECT_EQ(memory->steps(), step + 1);
    for (int64_t r = 0; r < count; ++r) {
      Row& row = rows[static_cast<size_t>(r)];
      const auto first = qkv.begin() + r * 3 * kSize;
      row.history.insert(row.history.end(), first, first + 3 * kSize);
      const Tensor all = self_attention(matrix(row.history, 3 * kSize), sentence(step + 1),
                                        {kHeads, Look::back, {}});
      const int32_t begin = offsets[row.sentence], end = offsets[row.sentence + 1];
      const Tensor to_source =
          cross_attention(matrix({q.begin() + r * kSize, q.begin() + (r + 1) * kSize}, kSize),
                          source.window(begin, end - begin), sentence(1), sentence(end - begin),
                          {kHeads, Look::everywhere, {}});
      for (int64_t j = 0; j < kSize; ++j) {
        EXPECT_NEAR(own.values()[r * kSize + j], all.values()[step * kSize + j], 1e-12);
        EXPECT_NEAR(of_source.values()[r * kSize + j], to_source.values()[j], 1e-12);
      }
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

TEST(DecoderMemory, BeginsAnew) {
  Random random(6);
  const auto memory = decoder_memory({1, kSize, kHeads}, Cpu{});
  const Tensor source = matrix(draw(random, 2 * 2 * kSize), 2 * kSize),
               qkv = matrix(draw(random, 3 * kSize), 3 * kSize);
  std::vector<double> first;
  for (int time = 0; time < 2; ++time) {
    memory->start({source}, std::vector<int32_t>{0, 2});
    const Tensor y = memory->step({std::vector<int32_t>{3}, 0, {}},
                                  [&](const auto&) { return memory->attend_words(0, qkv); });
    if (time == 0) first = y.values();
    EXPECT_EQ(y.values(), first);
    memory->forget();
  }
}

}  // namespace
}  // namespace fovea

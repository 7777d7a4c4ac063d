#include "vectors/skip_gram_kernel.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <vector>

#include "base/random.h"
#include "effort.h"

namespace fovea {
namespace {

using kernel::SkipGramBlock;
using kernel::SkipGramPair;
using kernel::SkipGramRun;

constexpr int64_t kRows = 40;

// Two tables of random rows, and a reference computation in double.
struct Tables {
  int64_t size, stride;
  std::vector<float> input, output;
  std::vector<double> v, u;

  explicit Tables(int64_t n)
      : size(n),
        stride((n + kernel::kSkipGramLanes - 1) / kernel::kSkipGramLanes * kernel::kSkipGramLanes),
        input(kRows * stride), output(kRows * stride) {
    Random random(7);
    for (auto* table : {&input, &output})
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t j = 0; j < size; ++j)
          (*table)[i * stride + j] = static_cast<float>(random.normal() * 0.5);
    v.assign(input.begin(), input.end());
    u.assign(output.begin(), output.end());
  }

  double loss_of(const SkipGramPair& pair) const {
    const int64_t o = pair.output < 0 ? ~pair.output : pair.output;
    double x = 0;
    for (int64_t j = 0; j < size; ++j) x += v[pair.input * stride + j] * u[o * stride + j];
    return std::log1p(std::exp(pair.output < 0 ? x : -x));  // −log σ(s x)
  }

  // A step of gradient descent with central differences.
  double step(const SkipGramPair& pair, double rate) {
    const int64_t o = pair.output < 0 ? ~pair.output : pair.output;
    std::vector<double> dv(size), du(size);
    const auto slope = [&](double& x) {
      const double kept = x, h = 1e-4;
      x = kept + h;
      const double up = loss_of(pair);
      x = kept - h;
      const double down = loss_of(pair);
      x = kept;
      return (up - down) / (2 * h);
    };
    for (int64_t j = 0; j < size; ++j) dv[j] = slope(v[pair.input * stride + j]);
    for (int64_t j = 0; j < size; ++j) du[j] = slope(u[o * stride + j]);
    const double loss = loss_of(pair);
    for (int64_t j = 0; j < size; ++j) {
      v[pair.input * stride + j] -= rate * dv[j];
      u[o * stride + j] -= rate * du[j];
    }
    return loss;
  }

  double learn(const std::vector<SkipGramBlock>& blocks) {
    return kernel::skip_gram(Cpu{}, {input.data(), output.data(), stride}, blocks);
  }
};

// Pairs whose rows are congruent to `part` modulo `parts`.
std::vector<SkipGramPair> random_pairs(int count, int32_t part = 0, int32_t parts = 1) {
  Random random(11, part);
  std::vector<SkipGramPair> pairs;
  for (int i = 0; i < count; ++i) {
    const auto row = [&] {
      return static_cast<int32_t>(random.below(kRows / parts)) * parts + part;
    };
    const int32_t in = row(), out = row();
    pairs.push_back({in, random.below(6) == 0 ? out : ~out});
  }
  return pairs;
}

TEST(SkipGramKernel, MakesStepsOfGradientDescent) {
  for (const int64_t size : {1, 7, 16, 33, 100, 256}) {
    Tables tables(size);
    const auto pairs = random_pairs(200);
    const std::span<const SkipGramPair> all(pairs);
    const std::vector<SkipGramRun> runs{
        {all.first(50), 0.05f}, {all.subspan(50, 0), 1}, {all.subspan(50), 0.02f}};
    double expected = 0;
    for (size_t i = 0; i < pairs.size(); ++i)
      expected += tables.step(pairs[i], i < 50 ? 0.05 : 0.02);
    const double loss = tables.learn({{runs}});
    EXPECT_NEAR(loss, expected, 1e-4 * expected) << size;
    for (size_t i = 0; i < tables.v.size(); ++i) {
      ASSERT_NEAR(tables.input[i], tables.v[i], 2e-5) << size << " v " << i;
      ASSERT_NEAR(tables.output[i], tables.u[i], 2e-5) << size << " v' " << i;
    }
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = size; j < tables.stride; ++j) {
        ASSERT_EQ(tables.input[i * tables.stride + j], 0.0f);
        ASSERT_EQ(tables.output[i * tables.stride + j], 0.0f);
      }
  }
}

TEST(SkipGramKernel, SameBitsForAnyNumberOfThreads) {
  constexpr int32_t kParts = 8;
  std::vector<std::vector<SkipGramPair>> pairs;
  for (int32_t part = 0; part < kParts; ++part) pairs.push_back(random_pairs(400, part, kParts));
  std::vector<SkipGramRun> runs;
  for (const auto& part : pairs) runs.push_back({part, 0.1f});
  std::vector<SkipGramBlock> blocks;
  for (const auto& run : runs) blocks.push_back({std::span(&run, 1)});
  const int before = omp_get_max_threads();
  omp_set_num_threads(1);
  Tables one(100);
  const double loss = one.learn(blocks);
  for (const int threads : {2, 3, 8}) {
    if (only_runs() && threads == 8) continue;  // clang's OpenMP would leak its list of threads
    omp_set_num_threads(threads);
    Tables many(100);
    EXPECT_EQ(many.learn(blocks), loss);
    EXPECT_EQ(many.input, one.input);
    EXPECT_EQ(many.output, one.output);
  }
  omp_set_num_threads(before);
}

TEST(SkipGramKernel, LossOfExtremesIsFiniteAndOfNanIsNan) {
  Tables tables(1);
  tables.input[0] = 1e4f, tables.output[0] = 1e4f;
  const std::vector<SkipGramPair> wrong(100, {0, ~0});
  const std::vector<SkipGramRun> runs{{wrong, 0}};
  EXPECT_TRUE(std::isfinite(tables.learn({{runs}})));
  tables.input[0] = std::nanf("");
  EXPECT_TRUE(std::isnan(tables.learn({{runs}})));
}

}  // namespace
}  // namespace fovea

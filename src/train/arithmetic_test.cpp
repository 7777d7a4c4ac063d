#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "support/tiny_training.h"

// Compares the computations of a training with formulas over the text and the weights.
namespace fovea {
namespace {

// Computes the label-smoothed cross entropy of a text under Bigrams without dropout, and its
// gradient, as sums over all words.
struct BigramReference {
  std::vector<double> gradient;
  double loss = 0, nll = 0;
  int64_t words = 0;

  BigramReference(const Corpus& text, std::span<const double> weights, double smoothing)
      : gradient(weights.size(), 0) {
    for (int64_t i = 0; i < text.size(); ++i) {
      int32_t before = kBos;
      for (const int32_t word : text[i].target) {
        add(weights, before, word, smoothing);
        before = word;
      }
      add(weights, before, kEos, smoothing);
    }
  }
  double norm() const {  // the norm of the mean gradient
    double squares = 0;
    for (const double g : gradient) squares += g * g;
    return std::sqrt(squares) / static_cast<double>(words);
  }

 private:
  void add(std::span<const double> weights, int32_t before, int32_t word, double smoothing) {
    const auto row = static_cast<size_t>(before) * kWords;
    double sum = 0;
    for (size_t v = 0; v < kWords; ++v) sum += std::exp(weights[row + v]);
    for (size_t v = 0; v < kWords; ++v) {
      const double log_p = weights[row + v] - std::log(sum);
      const bool right = v == static_cast<size_t>(word);
      const double q = (right ? 1 - smoothing : 0) + smoothing / kWords;
      gradient[row + v] += std::exp(log_p) - q;
      loss -= q * log_p;
      if (right) nll -= log_p;
    }
    ++words;
  }
};

std::vector<double> first_weights() { return Bigrams(1).parameters().values().values(); }

class ArithmeticTest : public TrainerTest {
 protected:
  std::vector<double> weights_in(const std::string& path) const {
    const std::vector<float> found = read_weights(path, Bigrams(1).parameters());
    return {found.begin(), found.end()};
  }
  MetricsLine line(const std::string& name, const std::string& kind) const {
    for (const MetricsLine& m : read_metrics(directory(name) + "/metrics.jsonl"))
      if (m.kind == kind) return m;
    ADD_FAILURE() << name << ": no line of kind " << kind;
    return {};
  }
};

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted, double tol) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], wanted[i], tol) << "number " << i;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

// The first step of Adam is g / (|g| + ε). With ε = 1 the step depends on the size of g. One batch
// of all words gives the same update as several batches of different sizes. Clipping applies to the
// mean gradient.
TEST_F(ArithmeticTest, AnUpdateClipsTheMeanGradientOverAllWords) {
  dropout_ = 0;
  options_.schedule = {.kind = ScheduleKind::constant, .lr = 1, .warmup = 0};
  options_.checkpoint.every = 0;
  const int64_t parts = BatchPlan(text_, {.tokens = 40}, 0).size();
  ASSERT_GT(parts, 10);
  int run = 0;
  for (const double smoothing : {0.0, 0.3}) {
    const BigramReference all(text_, first_weights(), smoothing);
    for (const double clip : {0.0, 2 * all.norm(), 0.5 * all.norm()})
      for (const int64_t batches : {int64_t{1}, parts}) {
        options_.optimizer = {.eps = 1, .clip = clip};
        options_.batch.tokens = batches == 1 ? 100'000 : 40;
        most_ = 100'000;
        options_.train = {.updates = 1,
                          .accumulate = batches,
                          .label_smoothing = smoothing,
                          .log_every = 1,
                          .seed = 5};
        const std::string name = "run-" + std::to_string(run++);
        train(name);
        std::vector<double> wanted = first_weights();
        const double scale =
            (clip > 0 ? std::min(1.0, clip / all.norm()) : 1) / static_cast<double>(all.words);
        for (size_t i = 0; i < wanted.size(); ++i) {
          const double g = scale * all.gradient[i];
          wanted[i] -= g / (std::abs(g) + 1);
        }
        expect_near(weights_in(checkpoints(name).path(1)), wanted, 2e-6);
        const MetricsLine log = line(name, "train");
        const auto words = static_cast<double>(all.words);
        EXPECT_NEAR(*log.value("loss"), all.loss / words, 1e-5) << smoothing;
        EXPECT_NEAR(*log.value("ppl"), std::exp(all.nll / words), 1e-4);
        EXPECT_NEAR(*log.value("norm"), all.norm(), 1e-5);
      }
  }
}

// The minimum of the loss is where the model gives the smoothed distribution: there the gradient is
// 0.
TEST_F(ArithmeticTest, SmoothedTrainingEndsAtTheSmoothedDistribution) {
  dropout_ = 0;
  text_ = Corpus();
  for (int64_t i = 0; i < 8; ++i) text_.add(std::vector{5}, std::vector{5}, i + 1);
  options_.optimizer = {};
  options_.schedule = {.kind = ScheduleKind::cosine, .lr = 0.2, .warmup = 0, .total = 400};
  options_.train = {.updates = 400, .label_smoothing = 0.3, .log_every = 400, .seed = 5};
  options_.valid.every = 400;
  train("a");
  const std::vector<double> w = weights_in(checkpoints("a").path(400));
  const double* row = w.data() + kBos * kWords;
  double sum = 0;
  for (int v = 0; v < kWords; ++v) sum += std::exp(row[v]);
  for (int v = 0; v < kWords; ++v)
    EXPECT_NEAR(std::exp(row[v]) / sum, (v == 5 ? 0.7 : 0) + 0.3 / kWords, 1e-3) << v;
}

// ē_t = d_t ē_{t−1} + (1 − d_t) w_t with d_t = min(d, (1 + t) / (10 + t)). The trainer validates
// this average, keeps it in snapshots and saves it as the model.
TEST_F(ArithmeticTest, TheMovingAverageIsValidatedAndSaved) {
  options_.train.average = 2;
  options_.valid.every = options_.train.updates = 40;  // one snapshot: no average of snapshots
  for (const double decay : {0.0, 0.9}) {
    options_.optimizer.ema = decay;
    const std::string name = decay > 0 ? "averaged" : "plain";
    std::vector<double> average, now;
    const auto join = [&](double t) {  // w: the weights after update t
      const double d = std::min(decay, (1 + t) / (10 + t));
      for (size_t i = 0; i < now.size(); ++i) average[i] = d * average[i] + (1 - d) * now[i];
    };
    double updates = 0;
    train(name, [&](int64_t, ParameterStore& store) {  // before each update
      now = store.values().values();
      if (average.empty()) average = now;
      if (updates > 0) join(updates);
      ++updates;
    });
    Bigrams model(1);
    model.parameters().allocate_gradients();
    Optimizer optimizer(model.parameters(), options_.optimizer);
    read_checkpoint(checkpoints(name).path(40), {{"data", "1"}}, model.parameters(), optimizer);
    now = model.parameters().values().values();
    join(updates);
    expect_near(weights_in(directory(name) + "/model.safetensors"), average, 1e-5);
    expect_near(weights_in(snapshots(name).path(40)), average, 1e-5);
    const BigramReference valid(valid_.corpus, average, 0);
    EXPECT_NEAR(*line(name, "valid").value("loss"), valid.nll / static_cast<double>(valid.words),
                1e-5);
    if (decay > 0) {
      EXPECT_GT(distance(now, average), 0.05) << "the test would show nothing";
    }
  }
}

TEST_F(ArithmeticTest, UsesThePrecisionOfTheRecipe) {
  options_.train.updates = 3;
  for (const Precision wanted : {Precision::f32, Precision::bf16}) {
    options_.train.precision = wanted;
    train(wanted == Precision::bf16 ? "bf16" : "f32");
    EXPECT_EQ(precisions_, std::set{wanted});  // for updates and validations
  }
}

// Without moments Adam changes a weight by the learning rate, whatever its gradient. So the test
// can observe the rate. It halves at each rollback: one because of a loss rise, one because of a
// weight that is not finite.
TEST_F(ArithmeticTest, EachRollbackHalvesTheLearningRate) {
  const double rate = 0.01;
  options_.optimizer = {.beta1 = 0, .beta2 = 0};
  options_.schedule = {.kind = ScheduleKind::constant, .lr = rate, .warmup = 0};
  options_.train.updates = 300;
  options_.valid.every = 300;
  options_.checkpoint.every = 4;
  std::vector<double> steps;  // of the first number of "rest"
  double last = 0;
  train("a", [&, spoiled = false, broken = false](int64_t drawn, ParameterStore& store) mutable {
    float* rest = store.values().data<float>() + kWords * kWords;
    steps.push_back(last - static_cast<double>(*rest));
    last = static_cast<double>(*rest);
    store.gradients().data<float>()[kWords * kWords] = 1;
    if (drawn >= 400 && !spoiled) {  // as after a bad update: from now on the loss is high
      spoiled = true;
      for (int64_t i = 0; i < kWords * kWords; ++i)
        store.values().data<float>()[i] = i % 2 ? 30.0f : -30.0f;
    }
    if (drawn >= 500 && !broken) {
      broken = true;
      store.values().data<float>()[5] = std::numeric_limits<float>::infinity();
    }
  });
  EXPECT_EQ(state_.rises, 1);
  EXPECT_EQ(state_.rollbacks, 1);
  std::vector<double> rates;  // distinct rates in order; jumps to older weights are omitted
  for (const double step : steps)
    if (step > 0 && (rates.empty() || std::abs(rates.back() - step) > 1e-5)) rates.push_back(step);
  ASSERT_EQ(rates.size(), 3u);
  EXPECT_NEAR(rates[0], rate, 1e-5);
  EXPECT_NEAR(rates[1], rate / 2, 1e-5);
  EXPECT_NEAR(rates[2], rate / 4, 1e-5);
}

}  // namespace
}  // namespace fovea

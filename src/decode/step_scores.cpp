#include "decode/step_scores.h"

#include <cmath>
#include <utility>

#include "ops/shape.h"
#include "text/vocabulary.h"

namespace fovea {
namespace {

double number_at(const Tensor& x, int64_t i) {
  return x.type() == ElementType::f32 ? static_cast<double>(x.data<float>()[i])
                                      : x.data<double>()[i];
}

}  // namespace

StepScores::StepScores(Tensor scores, bool ensemble, int64_t k)
    : scores_(std::move(scores)), ensemble_(ensemble), k_(k), best_(on_host(top_k(scores_, k))) {}

StepScores::StepScores(const BeamStepResult& result, int64_t k)
    : k_(k), best_(result.best), ends_(result.endings.values()) {}

double StepScores::score(double stored) const { return ensemble_ ? std::log(stored) : stored; }

double StepScores::log_sum(int64_t row) const {
  return ensemble_ ? 0 : number_at(best_.log_sum, row);
}

int32_t StepScores::word(int64_t row, int64_t j) const {
  return best_.columns.data<int32_t>()[row * k_ + j];
}

double StepScores::log_prob(int64_t row, int64_t j) const {
  return score(number_at(best_.values, row * k_ + j)) - log_sum(row);
}

bool StepScores::finite(int64_t row) const {
  return std::isfinite(log_sum(row)) && word(row, 0) >= 0;
}

double StepScores::stored(int64_t row, int32_t word) const {
  if (std::holds_alternative<Cpu>(scores_.device()))
    return number_at(scores_, row * scores_.cols() + word);
  const std::lock_guard hold(mutex_);
  std::vector<double>& copy = rows_[row];
  if (copy.empty()) copy = scores_.window(row, 1).values();
  return copy[static_cast<size_t>(word)];
}

double StepScores::log_prob_of(int64_t row, int32_t word) const {
  return score(stored(row, word)) - log_sum(row);
}

void StepScores::fetch_ends() const {
  const std::lock_guard hold(mutex_);
  if (ends_.empty()) ends_ = columns(scores_, kEos, 1).values();
}

double StepScores::end_log_prob(int64_t row) const {
  fetch_ends();
  return score(ends_[static_cast<size_t>(row)]) - log_sum(row);
}

std::vector<double> StepScores::all(int64_t row) const {
  std::vector<double> words = scores_.window(row, 1).values();
  for (double& w : words) w = score(w);
  return words;
}

}  // namespace fovea

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

// One step of a computation of attention. If `of` is Of::query, its result is one number or vector.
// If `of` is Of::words, its result is one number or vector for each word of the sentence.
struct ComputationStep {
  enum class Of { query, words };
  enum class Display { numbers, share };  // share: weights, which views draw as bars

  std::string name;     // such as "q·k_j"
  std::string formula;  // empty if the formula of the previous step includes this step
  Of of = Of::query;
  std::vector<std::vector<double>> rows = {};  // a row per word, or only one row
  Display shown = Display::numbers;
  // If each number is a sum of products, such as Σ_i a_i b_i: the names of the steps that computed
  // a and b. Otherwise empty.
  std::vector<std::string> factors = {};
};

// The steps of a computation with their numbers, in order. The views and the JSON output show them.
struct ComputationSteps {
  std::vector<ComputationStep> all = {};

  void query(std::string name, std::string formula, std::vector<double> row) {
    all.push_back(
        {std::move(name), std::move(formula), ComputationStep::Of::query, {std::move(row)}});
  }
  void words(std::string name, std::string formula, std::vector<std::vector<double>> rows) {
    all.push_back(
        {std::move(name), std::move(formula), ComputationStep::Of::words, std::move(rows)});
  }
  // Appends a step with one number for each word.
  void column(std::string name, std::string formula, const std::vector<double>& numbers,
              ComputationStep::Display shown = ComputationStep::Display::numbers) {
    words(std::move(name), std::move(formula), {});
    for (const double number : numbers) all.back().rows.push_back({number});
    all.back().shown = shown;
  }
  // Like column(), but each number is a sum of products of elements of the steps `factors`.
  void sums(std::string name, std::string formula, const std::vector<double>& numbers,
            std::vector<std::string> factors) {
    column(std::move(name), std::move(formula), numbers);
    all.back().factors = std::move(factors);
  }
};

}  // namespace fovea

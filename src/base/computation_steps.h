#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

// One step of a computation: a number or a vector, or one of them for each word of the sentence.
struct ComputationStep {
  enum class Of { query, words };
  enum class Display { numbers, share };  // share: weights, drawn as bars

  std::string name;     // "q·k_j"
  std::string formula;  // how it is computed; empty if it belongs to the previous step
  Of of = Of::query;
  std::vector<std::vector<double>> rows = {};  // one, or one for each word
  Display shown = Display::numbers;
  // Names of steps: each number is the sum of the products of their elements. Empty if it is no
  // such sum.
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
  // One number for each word.
  void column(std::string name, std::string formula, const std::vector<double>& numbers,
              ComputationStep::Display shown = ComputationStep::Display::numbers) {
    words(std::move(name), std::move(formula), {});
    for (const double number : numbers) all.back().rows.push_back({number});
    all.back().shown = shown;
  }
  // Like column(), but each number is a sum of products of the steps `factors`.
  void sums(std::string name, std::string formula, const std::vector<double>& numbers,
            std::vector<std::string> factors) {
    column(std::move(name), std::move(formula), numbers);
    all.back().factors = std::move(factors);
  }
};

}  // namespace fovea

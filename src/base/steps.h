#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

// One number or vector of a computation, or one for each word that it runs over.
struct Step {
  enum class Of { query, words };
  enum class Shown { numbers, share };  // share: weights, to be drawn as bars

  std::string name;     // "q·k_j"
  std::string formula;  // how it is computed; empty: it is part of the step before
  Of of = Of::query;
  std::vector<std::vector<double>> rows = {};  // one, or one for each word
  Shown shown = Shown::numbers;
  // Names of steps: each number is the sum of the products of their entries. Empty: it is not.
  std::vector<std::string> factors = {};
};

// A computation with its real numbers, in order, for people and programs to look at.
struct Steps {
  std::vector<Step> all = {};

  void query(std::string name, std::string formula, std::vector<double> row) {
    all.push_back({std::move(name), std::move(formula), Step::Of::query, {std::move(row)}});
  }
  void words(std::string name, std::string formula, std::vector<std::vector<double>> rows) {
    all.push_back({std::move(name), std::move(formula), Step::Of::words, std::move(rows)});
  }
  // One number for each word.
  void column(std::string name, std::string formula, const std::vector<double>& numbers,
              Step::Shown shown = Step::Shown::numbers) {
    words(std::move(name), std::move(formula), {});
    for (const double number : numbers) all.back().rows.push_back({number});
    all.back().shown = shown;
  }
  // The same, each number a sum of products.
  void sums(std::string name, std::string formula, const std::vector<double>& numbers,
            std::vector<std::string> factors) {
    column(std::move(name), std::move(formula), numbers);
    all.back().factors = std::move(factors);
  }
};

}  // namespace fovea

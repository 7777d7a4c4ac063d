#include "explain/steps_json.h"

#include <algorithm>
#include <utility>

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

// Returns the values of a step: if each word has one number, a list of numbers, otherwise a list of
// lists.
Json values_of(const ComputationStep& step) {
  if (step.of == ComputationStep::Of::query) return step.rows.front();
  const auto one = [](const auto& row) { return row.size() == 1; };
  if (!std::ranges::all_of(step.rows, one)) return step.rows;
  Json numbers = Json::array();
  for (const auto& row : step.rows) numbers.push_back(row.front());
  return numbers;
}

}  // namespace

Json steps_json(const ComputationSteps& steps) {
  Json list = Json::array();
  int number = 0;
  for (const ComputationStep& step : steps.all) {
    if (!step.formula.empty()) ++number;
    Json one{{"step", number},
             {"name", step.name},
             {"formula", step.formula},
             {"of", step.of == ComputationStep::Of::words ? "words" : "query"}};
    if (step.shown == ComputationStep::Display::share) one["weights"] = true;
    if (!step.factors.empty()) one["factors"] = step.factors;
    one["values"] = values_of(step);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace fovea

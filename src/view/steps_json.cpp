#include "view/steps_json.h"

#include <algorithm>
#include <utility>

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

// A list of numbers where each word has one, else a list of lists.
Json values_of(const Step& step) {
  if (step.of == Step::Of::query) return step.rows.front();
  const auto one = [](const auto& row) { return row.size() == 1; };
  if (!std::ranges::all_of(step.rows, one)) return step.rows;
  Json numbers = Json::array();
  for (const auto& row : step.rows) numbers.push_back(row.front());
  return numbers;
}

}  // namespace

Json steps_json(const Steps& steps) {
  Json list = Json::array();
  int number = 0;
  for (const Step& step : steps.all) {
    if (!step.formula.empty()) ++number;
    list.push_back({{"step", number},
                    {"name", step.name},
                    {"formula", step.formula},
                    {"of", step.of == Step::Of::words ? "words" : "query"},
                    {"values", values_of(step)}});
  }
  return list;
}

}  // namespace fovea

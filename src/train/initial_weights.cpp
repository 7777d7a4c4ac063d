#include "train/initial_weights.h"

#include <algorithm>

#include "base/check.h"
#include "decode/model_bundle.h"

namespace fovea {
namespace {

using Parameter = ParameterStore::Parameter;

// If each row of a parameter belongs to a piece of a vocabulary, returns this vocabulary, otherwise
// null. With tied embeddings, `source/E` and `target/E` also serve as the output layer.
const Vocabulary* vocabulary_of(const std::string& parameter, const Vocabulary& source,
                                const Vocabulary& target) {
  if (parameter == "source/E") return &source;
  const bool of_target =
      parameter == "target/E" || parameter == "output/W" || parameter == "output/b";
  return of_target ? &target : nullptr;
}

// For each piece, the rows of the old table whose mean is its row. Empty if there is none.
std::vector<std::vector<int32_t>> rows_of(const Vocabulary& old_pieces,
                                          const Vocabulary& new_pieces) {
  std::vector<std::vector<int32_t>> rows;
  for (int32_t id = 0; id < new_pieces.size(); ++id) {
    const int32_t row = id < kSpecials ? id : old_pieces.id(new_pieces.name(id));
    if (id < kSpecials || row >= kSpecials) {
      rows.push_back({row});
    } else {
      rows.push_back(old_pieces.encode(new_pieces.decode(std::vector{id})));
      std::erase(rows.back(), kUnk);
    }
  }
  return rows;
}

// Copies the rows of pieces, or the means of rows.
void copy_rows(const Parameter& from, const Parameter& to,
               const std::vector<std::vector<int32_t>>& rows, CopiedWeights& copied) {
  const std::vector<double> old_values = from.tensor.values();
  std::vector<double> values = to.tensor.values();
  const int64_t width = std::ssize(values) / std::ssize(rows);
  for (size_t id = 0; id < rows.size(); ++id) {
    const auto count = std::ssize(rows[id]);
    ++(count == 0 ? copied.new_pieces : count == 1 ? copied.pieces : copied.means);
    for (int64_t j = 0; count > 0 && j < width; ++j) {
      double sum = 0;
      for (const int32_t row : rows[id]) sum += old_values[row * width + j];
      values[static_cast<int64_t>(id) * width + j] = sum / static_cast<double>(count);
    }
  }
  to.tensor.assign(values);
}

void check_shape(const std::string& directory, const Parameter& parameter, const Parameter* other,
                 size_t first_axis) {
  check(other, ExitCode::data, "train.from: ", directory, " has no parameter '", parameter.name,
        "'; use the same model settings in the recipe (see ", directory, "/config.yml)");
  const Shape &shape = parameter.tensor.shape(), &found = other->tensor.shape();
  bool equal = shape.size() == found.size();
  for (size_t i = first_axis; equal && i < shape.size(); ++i) equal = shape[i] == found[i];
  check(equal, ExitCode::data, "train.from: ", directory, ": parameter '", parameter.name,
        "' has shape ", found, ", the recipe's model has ", shape,
        "; use the same model settings in the recipe (see ", directory, "/config.yml)");
}

}  // namespace

CopiedWeights copy_weights(const std::string& directory, const TrainData& data,
                           const ParameterStore& store) {
  const ModelBundle bundle = load_package(directory, store.device());
  const auto source = rows_of(bundle.source, data.source);
  const auto target = rows_of(bundle.target, data.target);
  CopiedWeights copied;
  for (const Parameter& parameter : store.all()) {
    const Parameter* const other = bundle.model->parameters().find(parameter.name);
    const Vocabulary* const pieces = vocabulary_of(parameter.name, data.source, data.target);
    check_shape(directory, parameter, other, pieces ? 1 : 0);
    if (pieces)
      copy_rows(*other, parameter, pieces == &data.source ? source : target, copied);
    else
      parameter.tensor.assign(other->tensor.values());
  }
  return copied;
}

}  // namespace fovea

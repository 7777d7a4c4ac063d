#include "train/initial_weights.h"

#include <algorithm>

#include "base/check.h"
#include "decode/package.h"

namespace fovea {
namespace {

using Parameter = ParameterStore::Parameter;

// The vocabulary that has a piece for each row of a parameter; null for all other parameters.
// With tied embeddings, `source/E` and `target/E` also serve as the output layer.
const Vocabulary* vocabulary_of(const std::string& parameter, const Vocabulary& source,
                                const Vocabulary& target) {
  if (parameter == "source/E") return &source;
  const bool of_target =
      parameter == "target/E" || parameter == "output/W" || parameter == "output/b";
  return of_target ? &target : nullptr;
}

// Copies the rows of pieces that both vocabularies have.
void copy_rows(const Parameter& from, const Vocabulary& old_pieces, const Parameter& to,
               const Vocabulary& new_pieces, CopiedWeights& copied) {
  const std::vector<double> old_values = from.tensor.values();
  std::vector<double> values = to.tensor.values();
  const int64_t width = std::ssize(values) / new_pieces.size();
  for (int32_t id = 0; id < new_pieces.size(); ++id) {
    const int32_t row = id < kSpecials ? id : old_pieces.id(new_pieces.name(id));
    const bool found = id < kSpecials || row >= kSpecials;
    ++(found ? copied.pieces : copied.new_pieces);
    if (found) std::copy_n(old_values.begin() + row * width, width, values.begin() + id * width);
  }
  to.tensor.assign(values);
}

void check_shape(const std::string& directory, const Parameter& parameter, const Parameter* other,
                 size_t first_axis) {
  check(other, Exit::data, "train.from: ", directory, " has no parameter '", parameter.name,
        "'; give the recipe the same model settings (see ", directory, "/config.yml)");
  const Shape &shape = parameter.tensor.shape(), &found = other->tensor.shape();
  bool equal = shape.size() == found.size();
  for (size_t i = first_axis; equal && i < shape.size(); ++i) equal = shape[i] == found[i];
  check(equal, Exit::data, "train.from: ", directory, ": parameter '", parameter.name,
        "' has shape ", found, ", the recipe's model has ", shape,
        "; give the recipe the same model settings (see ", directory, "/config.yml)");
}

}  // namespace

CopiedWeights copy_weights(const std::string& directory, const TrainData& data,
                           const ParameterStore& store) {
  const Package package = load_package(directory, store.device());
  CopiedWeights copied;
  for (const Parameter& parameter : store.all()) {
    const Parameter* const other = package.model->parameters().find(parameter.name);
    const Vocabulary* const pieces = vocabulary_of(parameter.name, data.source, data.target);
    check_shape(directory, parameter, other, pieces ? 1 : 0);
    if (pieces)
      copy_rows(*other, *vocabulary_of(parameter.name, package.source, package.target), parameter,
                *pieces, copied);
    else
      parameter.tensor.assign(other->tensor.values());
  }
  return copied;
}

}  // namespace fovea

#include "train/checkpoint_average.h"

#include "models/model_directory.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"

namespace fovea {
namespace {

// Reads a model file, which has one tensor per parameter instead of a flat one.
std::vector<float> read_named(const SafetensorsFile& file, const ParameterStore& store) {
  const BorrowedValues own(store, store.values());  // restored at the end
  load_parameters(file, store);
  const float* values = store.values().data<float>();
  return {values, values + store.size()};
}

std::vector<float> read_any(const std::string& path, const ParameterStore& store) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  return is_flat(file) ? read_weights(path, store) : read_named(file, store);
}

}  // namespace

Tensor mean_weights(const std::vector<std::string>& paths, const ParameterStore& store) {
  std::vector<double> sums(static_cast<size_t>(store.size()), 0.0);
  for (const std::string& path : paths) {
    const std::vector<float> weights = read_any(path, store);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += weights[i];
  }
  for (double& sum : sums) sum /= static_cast<double>(paths.size());
  return Tensor::of({store.size()}, sums, store.type(), store.device());
}

}  // namespace fovea

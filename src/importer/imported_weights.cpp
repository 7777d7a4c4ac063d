#include "importer/imported_weights.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/utf8.h"

namespace fovea {

ImportedWeights::ImportedWeights(const ModelConfig& config, std::string origin)
    : origin_(std::move(origin)) {
  const auto model = declare_model(config);
  for (const ParameterStore::Parameter& p : model->parameters().all()) {
    order_.push_back(p.name);
    shapes_[p.name].assign(p.tensor.shape().begin(), p.tensor.shape().end());
  }
}

const std::vector<int64_t>& ImportedWeights::shape(const std::string& parameter) const {
  const auto found = shapes_.find(parameter);
  assert(found != shapes_.end());
  return found->second;
}

namespace {

int64_t product(const std::vector<int64_t>& shape) {
  int64_t result = 1;
  for (const int64_t size : shape) result *= size;
  return result;
}

}  // namespace

int64_t ImportedWeights::elements() const {
  int64_t sum = 0;
  for (const auto& [name, shape] : shapes_) sum += product(shape);
  return sum;
}

void ImportedWeights::set(const std::string& parameter, std::vector<float> values,
                          const std::string& from) {
  assert(product(shape(parameter)) == std::ssize(values));
  const auto bad = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  check(bad == values.end(), ExitCode::model, origin_, ": tensor '", printable(from), "': element ",
        bad - values.begin(), " is not finite, expected a number; copy the file ",
        "again from the original model");
  const bool fresh = values_.emplace(parameter, std::move(values)).second;
  assert(fresh);
  static_cast<void>(fresh);
}

void ImportedWeights::zero_biases() {
  for (const auto& [name, shape] : shapes_) {
    const std::string last = name.substr(name.rfind('/') + 1);
    if (!values_.contains(name) && (last == "b" || last.starts_with("b_")))
      values_.emplace(name, std::vector<float>(static_cast<size_t>(product(shape))));
  }
}

void ImportedWeights::write(const std::string& path, StoredType stored) const {
  SafetensorsWriter writer;
  std::vector<std::vector<uint16_t>> halves;
  halves.reserve(order_.size());
  for (const std::string& name : order_) {
    const std::vector<float>& values = values_.at(name);
    if (stored == StoredType::F32) {
      writer.add(name, stored, shape(name), std::as_bytes(std::span(values)));
      continue;
    }
    std::vector<uint16_t>& rounded = halves.emplace_back(values.size());
    std::ranges::transform(values, rounded.begin(), [](float x) { return to_bf16(x).bits; });
    writer.add(name, stored, shape(name), std::as_bytes(std::span(rounded)));
  }
  writer.set_metadata("producer", "fovea " FOVEA_VERSION);
  writer.write(path);
}

std::vector<float> in_piece_order(const std::vector<float>& matrix, int64_t columns,
                                  const ForeignPieces& pieces, float missing) {
  std::vector<float> result(static_cast<size_t>(pieces.size() * columns), missing);
  for (int64_t id = 0; id < pieces.size(); ++id) {
    const int64_t row = pieces.order().rows[static_cast<size_t>(id)];
    if (row >= 0)
      std::memcpy(result.data() + id * columns, matrix.data() + row * columns,
                  static_cast<size_t>(columns) * sizeof(float));
  }
  return result;
}

std::vector<float> transposed(const std::vector<float>& matrix, int64_t rows, int64_t columns) {
  std::vector<float> result(matrix.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      result[static_cast<size_t>(c * rows + r)] = matrix[static_cast<size_t>(r * columns + c)];
  return result;
}

}  // namespace fovea

#include "importer/weight_mapping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/check.h"
#include "base/utf8.h"

namespace fovea {
namespace {

std::string text_of(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// The shape without leading sizes of 1.
std::vector<int64_t> essential(std::vector<int64_t> shape) {
  while (shape.size() > 1 && shape.front() == 1) shape.erase(shape.begin());
  return shape;
}

}  // namespace

const std::vector<int64_t>& WeightMapping::shape(const std::string& tensor) const {
  const ArchivedTensor* found = from_.find(tensor);
  check(found != nullptr, ExitCode::model, from_.path(), ": tensor '", printable(tensor),
        "': missing, the settings of the model ask for it; use the weights and the settings of ",
        "the same model");
  return found->shape;
}

std::vector<float> WeightMapping::read(const std::string& tensor,
                                       const std::vector<int64_t>& expected) {
  const std::vector<int64_t>& found = shape(tensor);
  check(essential(found) == essential(expected), ExitCode::model, from_.path(), ": tensor '",
        printable(tensor), "': shape ", text_of(found), ", the settings of the model ask for ",
        text_of(expected), "; use the weights and the settings of the same model");
  read_.insert(tensor);
  return from_.floats(tensor);
}

void WeightMapping::copy(const std::string& parameter, const std::string& tensor, float scale) {
  std::vector<float> values = read(tensor, to_.shape(parameter));
  if (scale != 1)
    for (float& x : values) x *= scale;
  to_.set(parameter, std::move(values), tensor);
}

void WeightMapping::copy_rows(const std::string& parameter, const std::string& tensor,
                              RowRange rows) {
  const std::vector<int64_t>& own = to_.shape(parameter);
  std::vector<int64_t> whole = own;
  whole[0] *= rows.total;
  const std::vector<float> values = read(tensor, whole);
  const auto size = std::ssize(values) / rows.total;
  const auto begin = values.begin() + rows.first * size;
  to_.set(parameter, std::vector<float>(begin, begin + size), tensor);
}

void WeightMapping::copy_transposed(const std::string& parameter, const std::string& tensor) {
  const std::vector<int64_t>& own = to_.shape(parameter);
  to_.set(parameter, transposed(read(tensor, {own[1], own[0]}), own[1], own[0]), tensor);
}

void WeightMapping::copy_words(const std::string& parameter, const std::string& tensor,
                               const ForeignPieces& pieces, float scale) {
  const int64_t columns = to_.shape(parameter)[1];
  std::vector<float> values =
      in_piece_order(read(tensor, {pieces.foreign_size(), columns}), columns, pieces, 0);
  if (scale != 1)
    for (float& x : values) x *= scale;
  to_.set(parameter, std::move(values), tensor);
}

void WeightMapping::copy_output_bias(const std::string& tensor, const ForeignPieces& pieces) {
  const std::vector<float> values =
      tensor.empty() ? std::vector<float>(static_cast<size_t>(pieces.foreign_size()))
                     : read(tensor, {pieces.foreign_size()});
  std::vector<float> bias = in_piece_order(values, 1, pieces, kNoPieceBias);
  for (float& x : bias)
    if (x == -HUGE_VALF) x = kNoPieceBias;
  to_.set("output/b", std::move(bias), tensor);
}

void WeightMapping::check_all_read() const {
  for (const ArchivedTensor& tensor : from_.tensors())
    check(read_.contains(tensor.name), ExitCode::model, from_.path(), ": tensor '",
          printable(tensor.name), "' of shape ", text_of(tensor.shape),
          ": no part of this architecture reads it; Fovea does not support this variant of the ",
          "model");
}

std::string stored_types(const TensorArchive& archive) {
  std::set<std::string_view> types;
  for (const ArchivedTensor& tensor : archive.tensors())
    if (essential(tensor.shape).size() == 2) types.insert(stored_name(tensor.type));
  return fmt::format("{}", fmt::join(types, ", "));
}

}  // namespace fovea

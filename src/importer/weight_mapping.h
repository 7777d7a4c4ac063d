#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor_archive.h"
#include "importer/imported_weights.h"

namespace fovea {

// A part of the rows of a foreign matrix, as of projections that are stored side by side.
struct RowRange {
  int64_t first = 0, total = 0;  // in units of the rows of the parameter; total 0: all rows
};

// The copy of foreign tensors into the parameters of a model. It remembers which tensors were read,
// so that check_all_read() can reject a tensor that nothing reads. Errors are ExitCode::model with
// the file, the tensor, the value found and the expected one.
class WeightMapping {
 public:
  // Both must outlive the object.
  WeightMapping(const TensorArchive& from, ImportedWeights& to) : from_(from), to_(to) {}

  bool has(const std::string& tensor) const { return from_.find(tensor) != nullptr; }
  bool wants(const std::string& parameter) const { return to_.has(parameter); }
  // The shape of a foreign tensor; it must exist.
  const std::vector<int64_t>& shape(const std::string& tensor) const;
  // The values of a tensor of this shape. Leading sizes of 1 in the file do not count.
  std::vector<float> read(const std::string& tensor, const std::vector<int64_t>& shape);

  // PARAMETER = tensor, with the same shape.
  void copy(const std::string& parameter, const std::string& tensor, float scale = 1);
  // PARAMETER = part of the rows of tensor.
  void copy_rows(const std::string& parameter, const std::string& tensor, RowRange rows);
  // PARAMETER = tensorᵀ.
  void copy_transposed(const std::string& parameter, const std::string& tensor);
  // PARAMETER [words, columns] = rows of the tensor in the order of the pieces.
  void copy_words(const std::string& parameter, const std::string& tensor,
                  const ForeignPieces& pieces, float scale = 1);
  // The output bias: that of the tensor, zero if `tensor` is empty, and kNoPieceBias for pieces
  // that the model does not have.
  void copy_output_bias(const std::string& tensor, const ForeignPieces& pieces);
  void set(const std::string& parameter, std::vector<float> values, const std::string& tensor) {
    to_.set(parameter, std::move(values), tensor);
  }

  // Sets all biases to zero that have no value yet.
  void zero_biases() { to_.zero_biases(); }

  // Marks a tensor as read that the model does not need.
  void ignore(const std::string& tensor) { read_.insert(tensor); }
  void check_all_read() const;

  const std::string& path() const { return from_.path(); }

 private:
  const TensorArchive& from_;
  ImportedWeights& to_;
  std::set<std::string, std::less<>> read_;
};

// The types of the matrices of an archive: "F16".
std::string stored_types(const TensorArchive& archive);

}  // namespace fovea

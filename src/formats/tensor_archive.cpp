#include "formats/tensor_archive.h"

#include "base/safetensors_header.h"
#include "base/utf8.h"
#include "formats/stored_values.h"

namespace fovea {

int64_t ArchivedTensor::elements() const {
  int64_t n = 1;
  for (const int64_t d : shape) n *= d;
  return n;
}

uint64_t checked_size(const ArchivedTensor& tensor, const std::string& path) {
  const auto size = stored_bytes(tensor.type, tensor.shape);
  check(size.has_value() && *size <= uint64_t{1} << 62, ExitCode::model, path, ": tensor '",
        printable(tensor.name), "': its shape and type give no whole number of bytes below 2^62");
  return *size;
}

const ArchivedTensor* TensorArchive::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &tensors_[at->second];
}

const ArchivedTensor& TensorArchive::get(std::string_view name) const {
  const ArchivedTensor* tensor = find(name);
  check(tensor != nullptr, ExitCode::model, path_, ": there is no tensor '", printable(name), "'");
  return *tensor;
}

void TensorArchive::add(ArchivedTensor tensor) {
  check_tensor_name(tensor.name, ExitCode::model, path_);
  check(tensors_.size() < SafetensorsFile::kMaxTensors, ExitCode::model, path_, ": more than ",
        SafetensorsFile::kMaxTensors, " tensors");
  check(tensor.shape.size() <= SafetensorsFile::kMaxRank, ExitCode::model, path_, ": tensor '",
        printable(tensor.name), "': a rank of ", tensor.shape.size(), ", at most ",
        SafetensorsFile::kMaxRank, " is allowed");
  checked_size(tensor, path_);
  check(index_.emplace(tensor.name, tensors_.size()).second, ExitCode::model, path_, ": tensor '",
        printable(tensor.name), "' is given twice");
  tensors_.push_back(std::move(tensor));
}

size_t TensorArchive::index_of(const ArchivedTensor& tensor) const {
  return static_cast<size_t>(&get(tensor.name) - tensors_.data());
}

TensorBytes TensorArchive::bytes(const ArchivedTensor& tensor) const {
  return bytes_at(index_of(tensor));
}

std::vector<float> TensorArchive::scales(const ArchivedTensor& tensor) const {
  return scales_at(index_of(tensor));
}

std::vector<float> TensorArchive::floats(const ArchivedTensor& tensor) const {
  const TensorBytes stored = bytes(tensor);
  check(has_floats(tensor.type), ExitCode::model, path_, ": tensor '", printable(tensor.name),
        "': values of type ", stored_name(tensor.type), " cannot be converted to float32");
  std::vector<float> values = to_floats(tensor.type, stored.bytes);
  const std::vector<float> scale = scales(tensor);
  if (scale.empty()) return values;
  const size_t row = values.size() / scale.size();
  for (size_t i = 0; i < values.size(); ++i) values[i] /= scale[i / row];
  return values;
}

}  // namespace fovea

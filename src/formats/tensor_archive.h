#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/safetensors.h"
#include "formats/file_bytes.h"

namespace fovea {

// A tensor in a file of another program: its name, the type of its stored elements, its shape.
struct ArchivedTensor {
  std::string name;
  StoredType type;
  std::vector<int64_t> shape;

  int64_t elements() const;
};

// The bytes of a tensor: little-endian, row-major. A part of the file, or memory if the file stores
// them in another form. A part of the file lives as long as the archive.
struct TensorBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // of memory; nullptr for a part of the file
};

// The tensors of a model file of another program. The constructor of a derived class checks
// everything except the values: names are unique, not empty and UTF-8, shapes fit the bytes, and
// all bytes are inside the file. Every error is ExitCode::model with the file's name and the
// location. Reading is thread-safe.
class TensorArchive {
 public:
  virtual ~TensorArchive() = default;
  TensorArchive(const TensorArchive&) = delete;
  TensorArchive& operator=(const TensorArchive&) = delete;

  const std::string& path() const { return path_; }
  // In the order of the file.
  const std::vector<ArchivedTensor>& tensors() const { return tensors_; }
  const ArchivedTensor* find(std::string_view name) const;  // nullptr if there is none
  const ArchivedTensor& get(std::string_view name) const;   // ExitCode::model if there is none

  // Properties of the whole file, for example "spec" of CTranslate2. See the derived classes.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  TensorBytes bytes(const ArchivedTensor& tensor) const;

  // Divisors of a quantised tensor, value = stored / scale. One for the tensor or one for each row
  // (index of the first axis). Empty if the tensor is not quantised.
  std::vector<float> scales(const ArchivedTensor& tensor) const;

  // The values as float32, row-major. Divides quantised values by their scale. Refuses types that
  // float32 cannot hold: complex, 4-bit to 8-bit floating point.
  std::vector<float> floats(const ArchivedTensor& tensor) const;
  std::vector<float> floats(std::string_view name) const { return floats(get(name)); }

 protected:
  explicit TensorArchive(std::string path) : path_(std::move(path)) {}

  // Registers the next tensor and checks name, rank and size. Derived classes identify tensors by
  // their index in this order.
  void add(ArchivedTensor tensor);
  void set_metadata(std::string key, std::string value) {
    metadata_[std::move(key)] = std::move(value);
  }
  virtual TensorBytes bytes_at(size_t index) const = 0;
  virtual std::vector<float> scales_at(size_t) const { return {}; }

 private:
  size_t index_of(const ArchivedTensor& tensor) const;

  std::string path_;
  std::vector<ArchivedTensor> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  std::map<std::string, std::string> metadata_;
};

// Number of bytes of a tensor. ExitCode::model if it is not a whole number below 2^63.
uint64_t checked_size(const ArchivedTensor& tensor, const std::string& path);

// Opens a model file by its content: safetensors, a checkpoint of PyTorch, CTranslate2's model.bin,
// Marian's .npz and .bin.
// The index of a sharded model is recognised by its name, *.index.json.
std::unique_ptr<TensorArchive> open_tensor_archive(const std::string& path);
std::unique_ptr<TensorArchive> open_tensor_archive(FileBytes file);

}  // namespace fovea

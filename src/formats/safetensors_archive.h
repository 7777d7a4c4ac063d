#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/file_bytes.h"
#include "formats/tensor_archive.h"

namespace fovea {

// A safetensors file of another program. metadata() is its `__metadata__`.
class SafetensorsArchive : public TensorArchive {
 public:
  explicit SafetensorsArchive(FileBytes file);

 private:
  TensorBytes bytes_at(size_t index) const override;

  FileBytes bytes_;
  SafetensorsFile file_;
};

// The files that `model.safetensors.index.json` names, as one archive. They are in the folder of
// the index. Each tensor of the index must be in the file that the index gives.
class ShardedSafetensors : public TensorArchive {
 public:
  static constexpr size_t kMaxIndex = size_t{64} << 20, kMaxShards = 1000;

  explicit ShardedSafetensors(const std::string& index_path);

 private:
  TensorBytes bytes_at(size_t index) const override { return {places_[index], nullptr}; }

  std::vector<FileBytes> files_;
  std::vector<std::span<const std::byte>> places_;
};

}  // namespace fovea

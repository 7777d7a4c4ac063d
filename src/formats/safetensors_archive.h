#pragma once

#include <map>
#include <string>
#include <string_view>
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

using WeightMap = std::map<std::string, std::string, std::less<>>;  // tensor → file

// Reads the "weight_map" of `model.safetensors.index.json`. Refuses file names with a path.
WeightMap read_weight_map(std::string_view json, const std::string& path);

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

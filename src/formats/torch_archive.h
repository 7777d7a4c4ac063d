#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/file_bytes.h"
#include "formats/pickle_content.h"
#include "formats/tensor_archive.h"
#include "formats/zip_folder.h"

namespace fovea {

// A checkpoint of PyTorch: pytorch_model.bin, a .pt of fairseq. Zip files, and the format before
// PyTorch 1.6. The names of tensors in nested dictionaries are joined by '/', for example
// "model/encoder.embed_tokens.weight". metadata() has all numbers and texts with such names, for
// example "args/encoder_layers"; booleans are "true" and "false". No code is executed.
class TorchArchive : public TensorArchive {
 public:
  static constexpr uint64_t kMaxPickle = uint64_t{32} << 20;
  static constexpr size_t kMaxVisits = 300'000, kMaxDepth = 32, kMaxPath = 512;
  static constexpr size_t kMaxValues = size_t{16} << 20;  // bytes of metadata()
  static constexpr uint64_t kMaxSharing = 16;             // tensors / storages, in bytes

  explicit TorchArchive(FileBytes file);

  // Returns whether the file is a checkpoint in the format before PyTorch 1.6.
  static bool is_legacy(std::span<const std::byte> bytes);
  // Returns whether a zip file is a checkpoint and no .npz.
  static bool is_checkpoint(const ZipFolder& zip);

 private:
  void read_zip();
  void read_legacy();
  void check_storages();
  void collect(uint32_t node, const std::string& name, size_t depth);
  void collect_items(const PickleNode& node, const std::string& name, size_t depth);
  void collect_value(const PickleNode& node, const std::string& name);
  void add_tensor(const PickleTensor& tensor, const std::string& name);
  std::string key_name(const PickleNode& key, const std::string& name) const;
  FileBytes storage_bytes(size_t storage) const;
  TensorBytes bytes_at(size_t index) const override;

  FileBytes file_;
  std::unique_ptr<ZipFolder> zip_;  // nullptr: the old format
  PickleContent content_;
  std::vector<FileBytes> data_;    // of the storages, in the old format
  std::vector<size_t> tensor_of_;  // index in content_.tensors
  size_t visits_ = 0, value_size_ = 0;
  uint64_t total_ = 0;
};

}  // namespace fovea

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/file_bytes.h"
#include "formats/tensor_archive.h"

namespace fovea {

// CTranslate2's model.bin, binary versions 1 to 6. metadata() has "version", "spec" (the name of
// the layout, empty in version 1) and "revision". Aliases are tensors with the same bytes.
// scales(): the tensor NAME_scale of an I8 or I16 tensor. I16 without it has the scale 1000.
class CTranslate2Archive : public TensorArchive {
 public:
  static constexpr uint32_t kNewestVersion = 6;

  explicit CTranslate2Archive(FileBytes file);

  // Returns whether a file with these first bytes can be a model.bin.
  static bool recognises(std::span<const std::byte> bytes);

 private:
  void read_variable(ByteReader& reader, uint32_t version);
  void read_aliases(ByteReader& reader);
  void add_alias(const std::string& alias, const std::string& name);
  void check_scales() const;
  const ArchivedTensor* scale_of(const ArchivedTensor& tensor) const;
  TensorBytes bytes_at(size_t index) const override { return {places_[index], nullptr}; }
  std::vector<float> scales_at(size_t index) const override;

  FileBytes file_;
  std::vector<std::span<const std::byte>> places_;
};

// The number of a type in model.bin from version 4 on. nullopt if the format has no such type.
std::optional<uint8_t> ctranslate2_type_id(StoredType type);

}  // namespace fovea

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/file_bytes.h"
#include "formats/tensor_archive.h"

namespace fovea {

// Marian's model.bin, as Bergamot and Firefox use it. metadata() has "special:model.yml", the
// options of the model as YAML. int8 and int16 weights (intgemm) have one scale. The file stores
// them transposed, except embeddings; bytes() and floats() have the order of the shape. Refuses
// encrypted files and weights that are packed for one kind of processor.
class MarianArchive : public TensorArchive {
 public:
  explicit MarianArchive(FileBytes file);

  static bool recognises(std::span<const std::byte> bytes);

 private:
  struct Item {
    uint64_t name_size, type, rank, size;
  };
  struct Place {
    std::span<const std::byte> bytes;
    bool transposed = false;
    float scale = 0;  // 0: not quantised
  };

  static std::vector<Item> read_items(ByteReader& reader);
  static std::vector<ArchivedTensor> read_names(ByteReader& reader, const std::vector<Item>& items);
  void read_data(ByteReader& reader, const Item& item, ArchivedTensor tensor);
  TensorBytes bytes_at(size_t index) const override;
  std::vector<float> scales_at(size_t index) const override;

  FileBytes file_;
  std::vector<Place> places_;
};

// The number of a type that is not quantised. nullopt if Marian has no such type.
std::optional<uint64_t> marian_type_id(StoredType type);

}  // namespace fovea

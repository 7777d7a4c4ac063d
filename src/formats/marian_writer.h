#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "formats/tensor_archive.h"

namespace fovea {

// A writer of Marian's model.bin, version 1, in the order of the calls. Data begins at multiples of
// 256 bytes, so that Marian can map the file.
class MarianWriter {
 public:
  // Does not copy the bytes: they must live until the file is written. The name must be new.
  // Matrices are [in, out]. The type is an integer type, F16, F32 or F64.
  void add(std::string name, StoredType type, std::vector<int64_t> shape,
           std::span<const std::byte> bytes);
  // The options of the model, YAML: the tensor "special:model.yml".
  void add_options(std::string yaml);

  void write(const std::string& path) const;
  std::string to_string() const;  // the same bytes in memory

 private:
  struct Item {
    ArchivedTensor tensor;
    std::span<const std::byte> bytes;
  };
  void check_new(const std::string& name);
  std::string header() const;
  template <class Sink>
  void put(Sink sink) const;

  std::vector<Item> items_;
  std::set<std::string> names_;
  std::string options_;
};

}  // namespace fovea

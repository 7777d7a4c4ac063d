#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/file_bytes.h"
#include "formats/tensor_archive.h"
#include "formats/zip_folder.h"

namespace fovea {

// NumPy's .npz: a zip file with one array in each entry NAME.npy. metadata() has
// "special:model.yml" if there is such an array, as in Marian's model.npz: options as YAML.
class NpzArchive : public TensorArchive {
 public:
  explicit NpzArchive(FileBytes file);

 private:
  void read_entry(const std::string& entry);
  TensorBytes bytes_at(size_t index) const override;

  struct Place {
    std::string entry;
    uint64_t header;  // bytes before the values
  };

  ZipFolder zip_;
  std::vector<Place> places_;
};

}  // namespace fovea

#include "base/utf8.h"
#include "formats/ctranslate2_archive.h"
#include "formats/safetensors_archive.h"
#include "formats/tensor_archive.h"

namespace fovea {

std::unique_ptr<TensorArchive> open_tensor_archive(const std::string& path) {
  if (path.ends_with(".index.json")) return std::make_unique<ShardedSafetensors>(path);
  FileBytes file = FileBytes::map(path);
  if (CTranslate2Archive::recognises(file.bytes))
    return std::make_unique<CTranslate2Archive>(std::move(file));
  return std::make_unique<SafetensorsArchive>(std::move(file));
}

}  // namespace fovea

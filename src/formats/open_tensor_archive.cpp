#include "formats/byte_reader.h"
#include "formats/ctranslate2_archive.h"
#include "formats/marian_archive.h"
#include "formats/npz_archive.h"
#include "formats/safetensors_archive.h"
#include "formats/tensor_archive.h"
#include "formats/torch_archive.h"
#include "formats/zip_folder.h"

namespace fovea {
namespace {

// After the length of the header comes JSON.
bool is_safetensors(const FileBytes& file) {
  return file.bytes.size() > 8 && file.bytes[8] == std::byte{'{'};
}

}  // namespace

std::unique_ptr<TensorArchive> open_tensor_archive(const std::string& path) {
  if (path.ends_with(".index.json")) return std::make_unique<ShardedSafetensors>(path);
  return open_tensor_archive(FileBytes::map(path));
}

std::unique_ptr<TensorArchive> open_tensor_archive(FileBytes file) {
  if (is_safetensors(file) || file.path.ends_with(".safetensors"))
    return std::make_unique<SafetensorsArchive>(std::move(file));
  if (TorchArchive::is_legacy(file.bytes)) return std::make_unique<TorchArchive>(std::move(file));
  if (ZipFolder::recognises(file.bytes)) {
    if (TorchArchive::is_checkpoint(ZipFolder(file, ZipNames::without_root)))
      return std::make_unique<TorchArchive>(std::move(file));
    return std::make_unique<NpzArchive>(std::move(file));
  }
  if (CTranslate2Archive::recognises(file.bytes))
    return std::make_unique<CTranslate2Archive>(std::move(file));
  if (MarianArchive::recognises(file.bytes))
    return std::make_unique<MarianArchive>(std::move(file));
  fail(ExitCode::model, file.path, ": byte 0: the first bytes are of no known kind of model; ",
       "safetensors, checkpoints of PyTorch, .npz and .bin of Marian, and model.bin of "
       "CTranslate2 can be read");
}

}  // namespace fovea

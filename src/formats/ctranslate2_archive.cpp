#include "formats/ctranslate2_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/utf8.h"

namespace fovea {
namespace {

constexpr float kGlobalScale = 1000;  // of I16 in files without scales
constexpr std::array kTypes = {StoredType::F32, StoredType::I8,  StoredType::I16,
                               StoredType::I32, StoredType::F16, StoredType::BF16};

// Two bytes of length, the text, a NUL that the length includes.
std::string read_string(ByteReader& reader, std::string_view what) {
  const auto length = reader.number<uint16_t>(what);
  if (length == 0) reader.fault(what, " has no NUL at its end");
  const std::string_view text = reader.text(length, what);
  if (text.find('\0') != text.size() - 1u)
    reader.fault(what, " '", printable(text), "' does not end with its only NUL");
  return std::string(text.substr(0, text.size() - 1));
}

}  // namespace

CTranslate2Archive::CTranslate2Archive(FileBytes file)
    : TensorArchive(file.path), file_(std::move(file)) {
  ByteReader reader(file_.bytes, file_.path);
  const auto version = reader.number<uint32_t>("the binary version");
  check(version >= 1 && version <= kNewestVersion, ExitCode::model, path(),
        ": byte 0: binary version ", version, ", versions 1 to ", kNewestVersion,
        " of CTranslate2 are known");
  std::string spec;
  uint32_t revision = 1;
  if (version >= 2) {
    spec = read_string(reader, "the name of the specification");
    if (!is_utf8(spec)) reader.fault("the name of the specification is not UTF-8");
    revision = reader.number<uint32_t>("the revision");
  }
  set_metadata("version", fmt::format("{}", version));
  set_metadata("spec", spec);
  set_metadata("revision", fmt::format("{}", revision));
  const auto count = reader.number<uint32_t>("the number of variables");
  reader.expect_items(count, 9, "variables");
  for (uint32_t i = 0; i < count; ++i) read_variable(reader, version);
  if (version >= 3) read_aliases(reader);
  reader.expect_end();
  check_scales();
}

void CTranslate2Archive::read_variable(ByteReader& reader, uint32_t version) {
  ArchivedTensor tensor{read_string(reader, "the name of a variable"), StoredType::F32, {}};
  const auto rank = reader.number<uint8_t>("the rank");
  for (int i = 0; i < rank; ++i)
    tensor.shape.push_back(reader.number<uint32_t>("the shape of a variable"));
  const auto id = reader.number<uint8_t>("the type of a variable");
  uint64_t size = reader.number<uint32_t>("the size of a variable");
  const std::string where = "variable '" + printable(tensor.name) + "': ";
  if (version >= 4) {
    if (id >= kTypes.size()) reader.fault(where, "unknown type ", id + 0);
    tensor.type = kTypes[id];
  } else {  // the width of an element, and the number of elements
    if (id != 1 && id != 2 && id != 4) reader.fault(where, "elements of ", id + 0, " bytes");
    tensor.type = id == 1 ? StoredType::I8 : id == 2 ? StoredType::I16 : StoredType::F32;
    size *= id;
  }
  add(tensor);
  const uint64_t needed = checked_size(tensor, path());
  if (size != needed)
    reader.fault(where, "shape and type need ", needed, " bytes, its data has ", size);
  places_.push_back(reader.take(size, where + "the data"));
}

void CTranslate2Archive::read_aliases(ByteReader& reader) {
  const auto count = reader.number<uint32_t>("the number of aliases");
  reader.expect_items(count, 6, "aliases");
  std::vector<std::pair<std::string, std::string>> aliases;
  for (uint32_t i = 0; i < count; ++i) {
    std::string alias = read_string(reader, "an alias"), name = read_string(reader, "an alias");
    if (find(name) == nullptr)
      reader.fault("alias '", printable(alias), "' of '", printable(name),
                   "', which does not exist");
    add_alias(alias, name);
    aliases.emplace_back(std::move(alias), std::move(name));
  }
  for (const auto& [alias, name] : aliases)  // the scale goes with the weight
    if (find(name + "_scale") != nullptr && find(alias + "_scale") == nullptr)
      add_alias(alias + "_scale", name + "_scale");
}

void CTranslate2Archive::add_alias(const std::string& alias, const std::string& name) {
  const ArchivedTensor& tensor = get(name);
  const std::span<const std::byte> place = bytes(tensor).bytes;
  add({alias, tensor.type, tensor.shape});
  places_.push_back(place);
}

const ArchivedTensor* CTranslate2Archive::scale_of(const ArchivedTensor& tensor) const {
  if (tensor.type != StoredType::I8 && tensor.type != StoredType::I16) return nullptr;
  return find(tensor.name + "_scale");
}

void CTranslate2Archive::check_scales() const {
  for (const ArchivedTensor& tensor : tensors()) {
    const ArchivedTensor* scale = scale_of(tensor);
    if (scale == nullptr) continue;
    const int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
    const bool fits = scale->elements() == 1 || scale->elements() == rows;
    check(scale->type == StoredType::F32 && scale->shape.size() <= 1 && fits, ExitCode::model,
          path(), ": tensor '", printable(scale->name), "': ", scale->elements(), " ",
          stored_name(scale->type), " values are no scales of ", rows, " rows");
    for (const float x : floats(*scale))
      check(std::isfinite(x) && x > 0, ExitCode::model, path(), ": tensor '",
            printable(scale->name), "': a scale of ", x, ", a positive number is expected");
  }
}

std::vector<float> CTranslate2Archive::scales_at(size_t index) const {
  const ArchivedTensor& tensor = tensors()[index];
  if (const ArchivedTensor* scale = scale_of(tensor)) return floats(*scale);
  const bool weight = tensor.type == StoredType::I16 && tensor.name.ends_with("weight");
  return weight ? std::vector<float>{kGlobalScale} : std::vector<float>{};
}

std::optional<uint8_t> ctranslate2_type_id(StoredType type) {
  const auto at = std::ranges::find(kTypes, type);
  if (at == kTypes.end()) return std::nullopt;
  return static_cast<uint8_t>(at - kTypes.begin());
}

bool CTranslate2Archive::recognises(std::span<const std::byte> bytes) {
  const std::string none;
  ByteReader reader(bytes, none);
  if (reader.left() < 8) return false;
  const auto version = reader.number<uint32_t>("");
  const auto next = reader.number<uint32_t>("");
  return version >= 1 && version <= kNewestVersion && next > 0;  // else a file of Marian
}

}  // namespace fovea

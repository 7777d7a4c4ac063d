#include "formats/marian_archive.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/utf8.h"

namespace fovea {
namespace {

constexpr std::string_view kOptions = "special:model.yml";
constexpr uint64_t kAlignment = 256;

enum class Quantisation { none, intgemm };

struct TypeRow {
  uint64_t id;
  StoredType type;
  Quantisation quantisation = Quantisation::none;
};

// Bergamot's program writes intgemm types as 0x41xx, Marian 1.12 as 0x100xx.
constexpr std::array kTypes = {
    TypeRow{0x101, StoredType::I8},
    TypeRow{0x102, StoredType::I16},
    TypeRow{0x104, StoredType::I32},
    TypeRow{0x108, StoredType::I64},
    TypeRow{0x201, StoredType::U8},
    TypeRow{0x202, StoredType::U16},
    TypeRow{0x204, StoredType::U32},
    TypeRow{0x208, StoredType::U64},
    TypeRow{0x402, StoredType::F16},
    TypeRow{0x404, StoredType::F32},
    TypeRow{0x408, StoredType::F64},
    TypeRow{0x4101, StoredType::I8, Quantisation::intgemm},
    TypeRow{0x4102, StoredType::I16, Quantisation::intgemm},
    TypeRow{0x10001, StoredType::I8, Quantisation::intgemm},
    TypeRow{0x10002, StoredType::I16, Quantisation::intgemm},
};

const TypeRow* find_type(uint64_t id) {
  for (const TypeRow& row : kTypes)
    if (row.id == id) return &row;
  return nullptr;
}

std::string_view packed_name(uint64_t id) {
  if (id == 0x802) return "packed16";
  if (id == 0x1801) return "packed8avx2";
  if (id == 0x2801) return "packed8avx512";
  return id > 0x4000 ? "packed for intgemm" : "unknown";
}

// Copies a matrix with `rows` rows as its transpose. REQUIRES: it is not empty.
std::vector<std::byte> transpose(std::span<const std::byte> in, size_t rows, size_t width) {
  const size_t columns = in.size() / width / rows;
  std::vector<std::byte> out(in.size());
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      std::memcpy(&out[(j * rows + i) * width], &in[(i * columns + j) * width], width);
  return out;
}

}  // namespace

std::optional<uint64_t> marian_type_id(StoredType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type && row.quantisation == Quantisation::none) return row.id;
  return std::nullopt;
}

bool MarianArchive::recognises(std::span<const std::byte> bytes) {
  const std::string none;
  ByteReader reader(bytes, none);
  if (reader.left() < 16) return false;
  const auto version = reader.number<uint64_t>("");
  return version == 1 || version == 2;
}

MarianArchive::MarianArchive(FileBytes file) : TensorArchive(file.path), file_(std::move(file)) {
  ByteReader reader(file_.bytes, file_.path);
  const std::vector<Item> items = read_items(reader);
  std::vector<ArchivedTensor> tensors = read_names(reader, items);
  const auto offset = reader.number<uint64_t>("the size of the padding");
  if (offset > kAlignment) reader.fault("a padding of ", offset, " bytes, at most 256 is expected");
  reader.take(offset, "the padding");
  for (size_t i = 0; i < items.size(); ++i) read_data(reader, items[i], std::move(tensors[i]));
  reader.expect_end();
}

std::vector<MarianArchive::Item> MarianArchive::read_items(ByteReader& reader) {
  const auto version = reader.number<uint64_t>("the version");
  check(version != 2, ExitCode::model, reader.path(),
        ": byte 0: version 2 of Marian's files is encrypted; only version 1 can be read");
  check(version == 1, ExitCode::model, reader.path(), ": byte 0: version ", version,
        ", version 1 of Marian's files is expected");
  const auto count = reader.number<uint64_t>("the number of tensors");
  reader.expect_items(count, sizeof(Item), "tensors");
  if (count > SafetensorsFile::kMaxTensors)
    reader.fault(count, " tensors, at most ", SafetensorsFile::kMaxTensors, " are allowed");
  std::vector<Item> items(count);
  for (Item& item : items)
    for (uint64_t* value : {&item.name_size, &item.type, &item.rank, &item.size})
      *value = reader.number<uint64_t>("the header of a tensor");
  return items;
}

std::vector<ArchivedTensor> MarianArchive::read_names(ByteReader& reader,
                                                      const std::vector<Item>& items) {
  std::vector<ArchivedTensor> tensors;
  for (const Item& item : items) {
    const std::string_view name = reader.text(item.name_size, "the name of a tensor");
    if (name.empty() || name.find('\0') != name.size() - 1)
      reader.fault("the name '", printable(name), "' does not end with its only NUL");
    tensors.push_back({std::string(name.substr(0, name.size() - 1)), StoredType::F32, {}});
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string where = "tensor '" + printable(tensors[i].name) + "': ";
    if (items[i].rank > SafetensorsFile::kMaxRank)
      reader.fault(where, "a rank of ", items[i].rank, ", at most ", SafetensorsFile::kMaxRank,
                   " is allowed");
    for (uint64_t axis = 0; axis < items[i].rank; ++axis) {
      const auto size = reader.number<int32_t>("the shape of a tensor");
      if (size < 0) reader.fault(where, "a dimension of ", size);
      tensors[i].shape.push_back(size);
    }
  }
  return tensors;
}

void MarianArchive::read_data(ByteReader& reader, const Item& item, ArchivedTensor tensor) {
  const std::string where = "tensor '" + printable(tensor.name) + "': ";
  const TypeRow* row = find_type(item.type);
  if (row == nullptr)
    reader.fault(where, "type ", fmt::format("{:#x}", item.type), " (", packed_name(item.type),
                 ") cannot be read; convert the model with a type that is not packed");
  tensor.type = row->type;
  const bool quantised = row->quantisation == Quantisation::intgemm;
  const uint64_t size = checked_size(tensor, path());
  const uint64_t needed = size + (quantised ? sizeof(float) : 0);
  if (item.size < needed || item.size - needed > kAlignment)
    reader.fault(where, "shape and type need ", needed, " bytes, its data has ", item.size);
  Place place;
  ByteReader data(reader.take(item.size, where + "the data"), path());
  place.bytes = data.take(size, "");
  if (quantised) {
    place.scale = data.number<float>("the scale");
    check(std::isfinite(place.scale) && place.scale > 0, ExitCode::model, path(), ": ", where,
          "a scale of ", place.scale, ", a positive number is expected");
    place.transposed = tensor.name.find("Wemb") == std::string::npos;
  }
  if (tensor.name == kOptions) {
    const std::string_view text(reinterpret_cast<const char*>(place.bytes.data()), size);
    check(tensor.type == StoredType::I8 && is_utf8(text), ExitCode::model, path(), ": ", where,
          "the options are not text in UTF-8");
    check(!metadata().contains(tensor.name), ExitCode::model, path(), ": ", where, "given twice");
    set_metadata(tensor.name, std::string(text.substr(0, text.find('\0'))));
    return;
  }
  add(std::move(tensor));
  places_.push_back(place);
}

TensorBytes MarianArchive::bytes_at(size_t index) const {
  const Place& place = places_[index];
  const ArchivedTensor& tensor = tensors()[index];
  if (!place.transposed || tensor.shape.size() < 2 || place.bytes.empty())
    return {place.bytes, nullptr};
  const auto columns = static_cast<size_t>(tensor.shape.back());  // rows of the stored matrix
  const auto width = static_cast<size_t>(stored_bits(tensor.type)) / 8;
  auto copy =
      std::make_shared<const std::vector<std::byte>>(transpose(place.bytes, columns, width));
  return {*copy, copy};
}

std::vector<float> MarianArchive::scales_at(size_t index) const {
  const float scale = places_[index].scale;
  return scale > 0 ? std::vector<float>{scale} : std::vector<float>{};
}

}  // namespace fovea

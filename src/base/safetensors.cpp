#include "base/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

#include "base/crc32c.h"
#include "base/safetensors_header.h"
#include "base/utf8.h"

namespace fovea {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

struct TypeRow {
  std::string_view name;
  int bits;
};

constexpr std::array<TypeRow, 22> kTypes = {{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};
static_assert(kTypes.size() == static_cast<size_t>(StoredType::U64) + 1);

constexpr std::string_view kTableKey = "crc32c", kHeaderKey = "header_crc32c";
constexpr std::string_view kBlank = "00000000";
constexpr uint64_t kPrefix = 8;  // bytes that hold the header's length

std::string hex(uint32_t sum) { return fmt::format("{:08x}", sum); }

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t little_endian(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < kPrefix; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << (8 * i);
  return value;
}

// The checksum of the prefix and the header. The header contains eight digits with this checksum,
// which count as zeros. `before` and `after` are the bytes before and after these digits.
uint32_t header_sum(std::string_view before, std::string_view after) {
  const uint32_t sum = crc32c(as_byte_span(before));
  return crc32c(as_byte_span(after), crc32c(as_byte_span(kBlank), sum));
}

}  // namespace

int stored_bits(StoredType type) { return kTypes[static_cast<size_t>(type)].bits; }
std::string_view stored_name(StoredType type) { return kTypes[static_cast<size_t>(type)].name; }

std::optional<StoredType> stored_type(std::string_view name) {
  const auto at = std::ranges::find(kTypes, name, &TypeRow::name);
  if (at == kTypes.end()) return std::nullopt;
  return static_cast<StoredType>(at - kTypes.begin());
}

std::optional<uint64_t> stored_bytes(StoredType type, const std::vector<int64_t>& shape) {
  uint64_t n = 1;
  for (int64_t d : shape)
    if (d < 0 || __builtin_mul_overflow(n, static_cast<uint64_t>(d), &n)) return std::nullopt;
  if (__builtin_mul_overflow(n, static_cast<uint64_t>(stored_bits(type)), &n)) return std::nullopt;
  if (n % 8 != 0) return std::nullopt;
  return n / 8;
}

int64_t TensorInfo::elements() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  MappedFile mapped(path);
  SafetensorsFile file = parse(mapped.bytes(), path);
  file.file_ = std::move(mapped);
  return file;
}

SafetensorsFile SafetensorsFile::parse(std::span<const std::byte> bytes, std::string path) {
  SafetensorsFile file;
  file.path_ = std::move(path);
  file.bytes_ = bytes;
  const std::string& p = file.path_;
  check(bytes.size() >= kPrefix, ExitCode::model, p, ": the file has ", bytes.size(),
        " bytes, a safetensors file has at least 8 (header too small)");
  const uint64_t length = little_endian(bytes);
  check(length <= kMaxHeader, ExitCode::model, p, ": byte 0: a header of ", length,
        " bytes, at most ", kMaxHeader, " are allowed (header too large)");
  check(length <= bytes.size() - kPrefix, ExitCode::model, p, ": byte 0: a header of ", length,
        " bytes does not fit the file's ", bytes.size(), " (truncated?)");
  const std::string_view json = as_text(bytes.subspan(kPrefix, length));
  file.buffer_ = bytes.subspan(kPrefix + length);
  file.read_header(json);
  file.check_layout();
  file.check_checksums(json);
  return file;
}

void SafetensorsFile::read_header(std::string_view json) {
  const size_t bad = find_invalid_utf8(json);
  check(bad == std::string_view::npos, ExitCode::model, path_, ": byte ", kPrefix + bad,
        ": the header is not UTF-8");
  SafetensorsHeader header = parse_safetensors_header(json, path_);
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
}

void SafetensorsFile::check_layout() {
  std::ranges::sort(tensors_, [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t end = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorInfo& t = tensors_[i];
    const std::string where = path_ + ": tensor '" + printable(t.name) + "': ";
    check(t.begin <= t.end, ExitCode::model, where, "its data ends at byte ", t.end,
          " before it begins at ", t.begin);
    check(t.begin == end, ExitCode::model, where, "its data begins at byte ", t.begin,
          ", expected ", end, t.begin < end ? " (overlap)" : " (hole)");
    check(t.end <= buffer_.size(), ExitCode::model, where, "its data ends at byte ", t.end,
          " of the data, which has ", buffer_.size(), " (truncated?)");
    const auto needed = stored_bytes(t.dtype, t.shape);
    check(needed.has_value(), ExitCode::model, where,
          "its shape and type give no whole number of bytes below 2^64");
    check(*needed == t.end - t.begin, ExitCode::model, where, "shape and type need ", *needed,
          " bytes, its data has ", t.end - t.begin);
    end = t.end;
    index_.emplace(t.name, i);
  }
  check(end == buffer_.size(), ExitCode::model, path_, ": byte ",
        bytes_.size() - buffer_.size() + end, ": ", buffer_.size() - end,
        " bytes after the last tensor belong to none; the file is damaged");
}

void SafetensorsFile::check_checksums(std::string_view header) {
  const auto table = metadata_.find(std::string(kTableKey));
  const auto sum = metadata_.find(std::string(kHeaderKey));
  if (table == metadata_.end() && sum == metadata_.end()) return;
  check(table != metadata_.end() && sum != metadata_.end(), ExitCode::model, path_,
        ": the metadata has only one of 'crc32c' and 'header_crc32c'; the header is damaged");

  const std::string stored = fmt::format("\"{}\":\"{}\"", kHeaderKey, sum->second);
  const size_t at = header.find(stored);
  check(at != std::string_view::npos && sum->second.size() == kBlank.size(), ExitCode::model, path_,
        ": metadata 'header_crc32c' is not in its written form; the header is damaged");
  const std::string_view all = as_text(bytes_.first(kPrefix + header.size()));
  const size_t digits = kPrefix + at + stored.size() - 1 - kBlank.size();
  const uint32_t found = header_sum(all.substr(0, digits), all.substr(digits + kBlank.size()));
  check(hex(found) == sum->second, ExitCode::model, path_, ": checksum of the header: stored ",
        sum->second, ", computed ", hex(found), "; the file is damaged");

  checksums_ = parse_checksum_table(table->second, path_);
  for (const TensorInfo& t : tensors_)
    check(checksums_.contains(t.name), ExitCode::model, path_, ": tensor '", printable(t.name),
          "': no checksum in metadata 'crc32c'");
  check(checksums_.size() == tensors_.size(), ExitCode::model, path_, ": metadata 'crc32c' has ",
        checksums_.size(), " checksums for ", tensors_.size(), " tensors");
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &tensors_[at->second];
}

const TensorInfo& SafetensorsFile::get(std::string_view name) const {
  const TensorInfo* tensor = find(name);
  check(tensor != nullptr, ExitCode::model, path_, ": there is no tensor '", printable(name), "'");
  return *tensor;
}

std::span<const std::byte> SafetensorsFile::data(const TensorInfo& tensor) const {
  return buffer_.subspan(tensor.begin, tensor.end - tensor.begin);
}

void SafetensorsFile::verify(const TensorInfo& tensor) const {
  const auto stored = checksums_.find(tensor.name);
  if (stored == checksums_.end()) return;
  const uint32_t found = crc32c(data(tensor));
  check(found == stored->second, ExitCode::model, path_, ": checksum of tensor '",
        printable(tensor.name), "': stored ", hex(stored->second), ", computed ", hex(found),
        "; the file is damaged");
}

void SafetensorsFile::verify() const {
  for (const TensorInfo& tensor : tensors_) verify(tensor);
}

SafetensorsWriter::SafetensorsWriter(ChecksumMode checksums) : checksums_(checksums) {
  if (checksums_ == ChecksumMode::crc32c) metadata_["format"] = "pt";
}

void SafetensorsWriter::add(std::string name, StoredType dtype, std::vector<int64_t> shape,
                            std::span<const std::byte> bytes) {
  check_tensor_name(name, ExitCode::unexpected, "safetensors writer");
  check(names_.insert(name).second, ExitCode::unexpected, "tensor '", name, "' is added twice");
  check(shape.size() <= SafetensorsFile::kMaxRank, ExitCode::unexpected, "tensor '", name,
        "': rank ", shape.size());
  check(stored_bytes(dtype, shape) == bytes.size(), ExitCode::unexpected, "tensor '", name,
        "': ", bytes.size(), " bytes do not fit its shape and type");
  entries_.push_back({{std::move(name), dtype, std::move(shape), 0, 0}, bytes});
}

void SafetensorsWriter::set_metadata(std::string key, std::string value) {
  check(is_utf8(key) && is_utf8(value), ExitCode::unexpected, "metadata '", printable(key),
        "' is not UTF-8");
  check(key != kTableKey && key != kHeaderKey, ExitCode::unexpected, "metadata '", key,
        "' is reserved for checksums");
  metadata_[std::move(key)] = std::move(value);
}

std::vector<SafetensorsWriter::Entry> SafetensorsWriter::sorted() const {
  std::vector<Entry> entries = entries_;
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    if (a.info.dtype != b.info.dtype) return a.info.dtype > b.info.dtype;
    return a.info.name < b.info.name;
  });
  uint64_t at = 0;
  for (Entry& e : entries) {
    e.info.begin = at;
    e.info.end = at += e.bytes.size();
  }
  return entries;
}

// Returns the prefix and the JSON header, padded with spaces so that the data begins at a multiple
// of 8 bytes.
std::string SafetensorsWriter::header(const std::vector<Entry>& entries) const {
  std::map<std::string, std::string> metadata = metadata_;
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::string> table;
  for (const Entry& e : entries) {
    tensors.push_back(e.info);
    if (checksums_ == ChecksumMode::crc32c) table[e.info.name] = hex(crc32c(e.bytes));
  }
  if (checksums_ == ChecksumMode::crc32c) {
    metadata[std::string(kTableKey)] = format_checksum_table(table);
    metadata[std::string(kHeaderKey)] = kBlank;
  }
  std::string json = format_safetensors_header(tensors, metadata);
  json.resize((json.size() + 7) / 8 * 8, ' ');

  std::string out;
  for (size_t i = 0; i < kPrefix; ++i) out.push_back(static_cast<char>(json.size() >> (8 * i)));
  out += json;
  if (checksums_ == ChecksumMode::crc32c) {
    const std::string stored = fmt::format("\"{}\":\"{}\"", kHeaderKey, kBlank);
    const size_t digits = out.find(stored) + stored.size() - 1 - kBlank.size();
    out.replace(digits, kBlank.size(), hex(crc32c(as_byte_span(out))));
  }
  return out;
}

void SafetensorsWriter::write(const std::string& path) const {
  const std::vector<Entry> entries = sorted();
  const std::string head = header(entries);
  write_atomically(path, [&](AtomicFile& file) {
    file.write(head);
    for (const Entry& e : entries) file.write(e.bytes);
  });
}

std::string SafetensorsWriter::to_string() const {
  const std::vector<Entry> entries = sorted();
  std::string out = header(entries);
  for (const Entry& e : entries) out += as_text(e.bytes);
  return out;
}

}  // namespace fovea

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace fovea {

// Element types of a safetensors file, in the order of the reference implementation. When that
// implementation writes a file, it sorts the tensors by type, widest type first.
enum class StoredType {
  BOOL,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64,
};

int stored_bits(StoredType type);
std::string_view stored_name(StoredType type);
std::optional<StoredType> stored_type(std::string_view name);

// Number of bytes for the shape and type. If it is not a whole number or exceeds 64 bits, nullopt.
std::optional<uint64_t> stored_bytes(StoredType type, const std::vector<int64_t>& shape);

// The entry of a tensor in the header.
struct TensorInfo {
  std::string name;
  StoredType dtype;
  std::vector<int64_t> shape;
  uint64_t begin, end;  // byte range within the data section

  int64_t elements() const;
};

// A safetensors file, mapped into memory. open() checks everything except the data. If the file has
// checksums, verify() checks the data; a file without checksums is valid too. Every error is
// ExitCode::model with the file's name, the violated rule, and the tensor's name or the byte.
// docs/formats.md describes the checksums.
class SafetensorsFile {
 public:
  static constexpr uint64_t kMaxHeader = 100'000'000;
  static constexpr size_t kMaxTensors = 100'000, kMaxName = 256, kMaxRank = 8;

  static SafetensorsFile open(const std::string& path);
  // Like open(), but for bytes in memory, which must outlive the result.
  static SafetensorsFile parse(std::span<const std::byte> bytes, std::string path);

  // The tensors in the order of their data.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;  // nullptr if there is none
  const TensorInfo& get(std::string_view name) const;   // throws ExitCode::model if there is none

  // The bytes of a tensor, little-endian, row-major. They may not be aligned to the element's size.
  std::span<const std::byte> data(const TensorInfo& tensor) const;

  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }

  bool has_checksums() const { return !checksums_.empty(); }
  void verify(const TensorInfo& tensor) const;  // throws ExitCode::model "checksum of tensor X"
  void verify() const;                          // verifies all tensors

 private:
  void read_header(std::string_view json);
  void check_layout();
  void check_checksums(std::string_view header);

  std::string path_;
  std::optional<MappedFile> file_;
  std::span<const std::byte> bytes_, buffer_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
  std::map<std::string, std::string> metadata_;
  std::map<std::string, uint32_t, std::less<>> checksums_;
};

enum class ChecksumMode { none, crc32c };

// A writer that collects tensors and writes them through AtomicFile, in the reference
// implementation's order. With checksums it adds "crc32c" and "header_crc32c" to the metadata; it
// also sets "format" to "pt" if the caller has not set it. With ChecksumMode::none it adds nothing
// to the metadata.
class SafetensorsWriter {
 public:
  explicit SafetensorsWriter(ChecksumMode checksums = ChecksumMode::crc32c);

  // Does not copy the bytes: they must live until the file is written. The name must be new, 1 to
  // 256 bytes of UTF-8 without NUL. The number of bytes must match dtype and shape.
  void add(std::string name, StoredType dtype, std::vector<int64_t> shape,
           std::span<const std::byte> bytes);
  void set_metadata(std::string key, std::string value);

  void write(const std::string& path) const;
  std::string to_string() const;  // the bytes of the file, for tests

 private:
  struct Entry {
    TensorInfo info;
    std::span<const std::byte> bytes;
  };
  std::vector<Entry> sorted() const;
  std::string header(const std::vector<Entry>& entries) const;

  ChecksumMode checksums_;
  std::vector<Entry> entries_;
  std::set<std::string> names_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace fovea

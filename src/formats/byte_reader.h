#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/check.h"

namespace fovea {

// Reads little-endian values from bytes, one after the other. It never reads beyond the end: then
// it throws ExitCode::model with the file's name, the byte, and the name of the missing value.
class ByteReader {
 public:
  // The bytes and the path must outlive the reader.
  ByteReader(std::span<const std::byte> bytes, const std::string& path)
      : bytes_(bytes), path_(path) {}

  size_t position() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }
  const std::string& path() const { return path_; }

  // A number of type T. `what` names it in messages.
  template <class T>
  T number(std::string_view what) {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::span<const std::byte> take(uint64_t size, std::string_view what);
  std::string_view text(uint64_t size, std::string_view what);

  // Refuses a count of items of at least `smallest` bytes each if they do not fit the rest of the
  // file. To be called before memory for them is allocated.
  void expect_items(uint64_t count, uint64_t smallest, std::string_view what) const;
  void expect_end() const;

  // Throws ExitCode::model: "PATH: byte N: …", with the position of the next value.
  template <class... Parts>
  [[noreturn]] void fault(const Parts&... parts) const {
    fail(ExitCode::model, path_, ": byte ", at_, ": ", parts...);
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
  size_t at_ = 0;
};

}  // namespace fovea

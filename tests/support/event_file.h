#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32c.h"

// A reader of TensorBoard's event files.
namespace fovea::testing {

inline uint64_t little_endian(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// Splits a file into its messages. Fails if a length or a checksum is wrong.
inline std::vector<std::string> messages(std::string_view file) {
  const auto masked = [](std::string_view bytes) {
    const uint32_t crc = crc32c_portable(as_byte_span(bytes));
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
  };
  std::vector<std::string> all;
  while (!file.empty()) {
    if (file.size() < 16) throw std::runtime_error("torn record");
    const size_t length = little_endian(file, 0, 8);
    EXPECT_EQ(little_endian(file, 8, 4), masked(file.substr(0, 8)));
    if (file.size() < 16 + length) throw std::runtime_error("torn record");
    all.emplace_back(file.substr(12, length));
    EXPECT_EQ(little_endian(file, 12 + length, 4), masked(all.back()));
    file.remove_prefix(16 + length);
  }
  return all;
}

// Event { 1: wall_time, 2: step, 5: Summary { 1: Value { 1: tag, 2: simple_value } } }
struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string tag;  // empty if the event has no number
  float value = 0;
};

// Calls visit(number, bytes) for every field. A varint or fixed number has eight bytes.
template <class Visit>
void for_each_field(std::string_view message, const Visit& visit) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    const uint64_t type = key & 7;
    const uint64_t size = type == 1 ? 8 : type == 5 ? 4 : varint();  // for type 0 the value
    if (type == 0) {
      visit(key >> 3, size, std::string_view());
      continue;
    }
    visit(key >> 3, type == 2 ? 0 : little_endian(message, at, size), message.substr(at, size));
    at += size;
  }
}

inline Event parse_event(std::string_view message) {
  Event event;
  for_each_field(message, [&](uint64_t field, uint64_t number, std::string_view bytes) {
    if (field == 1) event.wall_time = std::bit_cast<double>(number);
    if (field == 2) event.step = static_cast<int64_t>(number);
    if (field != 5) return;
    for_each_field(bytes, [&](uint64_t, uint64_t, std::string_view value) {
      for_each_field(value, [&](uint64_t inner, uint64_t bits, std::string_view text) {
        if (inner == 1) event.tag = text;
        if (inner == 2) event.value = std::bit_cast<float>(static_cast<uint32_t>(bits));
      });
    });
  });
  return event;
}

}  // namespace fovea::testing

#include "formats/stored_values.h"

#include <bit>
#include <cassert>
#include <cstring>

namespace fovea {
namespace {

// One float for each value of type T, which `convert` maps.
template <class T, class Convert>
std::vector<float> map_values(std::span<const std::byte> bytes, Convert convert) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = convert(stored);
  }
  return values;
}

template <class T>
std::vector<float> cast_values(std::span<const std::byte> bytes) {
  return map_values<T>(bytes, [](T x) { return static_cast<float>(x); });
}

}  // namespace

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 31, fraction = half & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: fraction · 2^−24
    const float value = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | (fraction << 13));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

bool has_floats(StoredType type) {
  switch (type) {
    case StoredType::BOOL:
    case StoredType::U8:
    case StoredType::I8:
    case StoredType::I16:
    case StoredType::U16:
    case StoredType::F16:
    case StoredType::BF16:
    case StoredType::I32:
    case StoredType::U32:
    case StoredType::F32:
    case StoredType::F64:
    case StoredType::I64:
    case StoredType::U64:
      return true;
    default:
      return false;
  }
}

std::vector<float> to_floats(StoredType type, std::span<const std::byte> bytes) {
  switch (type) {
    case StoredType::BOOL:
      return map_values<uint8_t>(bytes, [](uint8_t x) { return x != 0 ? 1.0F : 0.0F; });
    case StoredType::U8:
      return cast_values<uint8_t>(bytes);
    case StoredType::I8:
      return cast_values<int8_t>(bytes);
    case StoredType::I16:
      return cast_values<int16_t>(bytes);
    case StoredType::U16:
      return cast_values<uint16_t>(bytes);
    case StoredType::F16:
      return map_values<uint16_t>(bytes, half_to_float);
    case StoredType::BF16:
      return map_values<uint16_t>(
          bytes, [](uint16_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x) << 16); });
    case StoredType::I32:
      return cast_values<int32_t>(bytes);
    case StoredType::U32:
      return cast_values<uint32_t>(bytes);
    case StoredType::F32:
      return cast_values<float>(bytes);
    case StoredType::F64:
      return cast_values<double>(bytes);
    case StoredType::I64:
      return cast_values<int64_t>(bytes);
    case StoredType::U64:
      return cast_values<uint64_t>(bytes);
    default:
      assert(!has_floats(type));
      return {};
  }
}

}  // namespace fovea

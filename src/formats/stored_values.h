#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/safetensors.h"

namespace fovea {

// IEEE 754 binary16 to binary32. Exact.
float half_to_float(uint16_t half);

// Whether to_floats() converts values of this type.
bool has_floats(StoredType type);

// Little-endian values as float32, rounded to nearest if they do not fit. BOOL gives 0 and 1.
// REQUIRES: has_floats(type), and `bytes` is a whole number of values.
std::vector<float> to_floats(StoredType type, std::span<const std::byte> bytes);

}  // namespace fovea

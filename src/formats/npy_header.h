#pragma once

#include <cstdint>
#include <string>

#include "formats/byte_reader.h"
#include "formats/tensor_archive.h"

namespace fovea {

inline constexpr uint64_t kMaxNpyHeader = 16384;  // with magic, version and length

// Reads the header of an array of NumPy (.npy, versions 1 to 3) up to the first value. Refuses
// values that are big-endian, column by column (Fortran order), or not numbers.
ArchivedTensor read_npy_header(ByteReader& reader, std::string name);

}  // namespace fovea

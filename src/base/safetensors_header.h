#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/safetensors.h"

namespace fovea {

// The JSON part of a safetensors file, read event by event so that nothing is built from it
// that has not been checked: nesting, duplicates, counts, names and types.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // as written, offsets not yet checked
  std::map<std::string, std::string> metadata;
};

// Throws Exit::model; `path` is for messages.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& path);
std::string format_safetensors_header(const std::vector<TensorInfo>& tensors,
                                      const std::map<std::string, std::string>& metadata);

// The metadata entry "crc32c": {"tensor name":"8 hex digits", …}.
std::map<std::string, uint32_t, std::less<>> parse_checksum_table(std::string_view json,
                                                                  const std::string& path);
std::string format_checksum_table(const std::map<std::string, std::string>& table);

void check_tensor_name(const std::string& name, Exit code, const std::string& path);

}  // namespace fovea

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/safetensors.h"

namespace fovea {

// The parsed JSON header of a safetensors file. The parser reads it event by event. It checks
// nesting, duplicates, counts, names and types before it stores anything.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of the file; their offsets are not yet checked
  std::map<std::string, std::string> metadata;
};

// Parses the header. On error throws ExitCode::model with `path` in the message.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& path);
std::string format_safetensors_header(const std::vector<TensorInfo>& tensors,
                                      const std::map<std::string, std::string>& metadata);

// Parses the metadata entry "crc32c": {"tensor name":"8 hex digits", …}.
std::map<std::string, uint32_t, std::less<>> parse_checksum_table(std::string_view json,
                                                                  const std::string& path);
std::string format_checksum_table(const std::map<std::string, std::string>& table);

void check_tensor_name(const std::string& name, ExitCode code, const std::string& path);

}  // namespace fovea

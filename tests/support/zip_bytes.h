#pragma once

#include <zlib.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/damaged_files.h"

namespace fovea::testing {

// An entry of a zip file. The optional fields replace the right values, for damaged files.
struct ZipEntry {
  std::string name, content;
  bool deflated = false;
  std::optional<uint16_t> method = {}, flags = {};
  std::optional<uint32_t> crc = {}, packed_size = {}, size = {}, offset = {};
  uint32_t attributes = 0;  // 0xA1FF0000: a link of Unix
  bool late_crc = false;    // behind the data, and 0 in the header of the entry
};

struct ZipEnd {
  std::optional<uint16_t> count = {}, disk = {};
  std::optional<uint32_t> size = {}, offset = {};
  std::string comment = {};
  bool zip64 = false;
};

inline std::string deflate_bytes(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string zip_bytes(const std::vector<ZipEntry>& entries, const ZipEnd& end = {}) {
  std::string out, directory;
  for (const ZipEntry& e : entries) {
    const std::string data = e.deflated ? deflate_bytes(e.content) : e.content;
    const auto crc = static_cast<uint32_t>(crc32(
        0, reinterpret_cast<const Bytef*>(e.content.data()), static_cast<uInt>(e.content.size())));
    const auto fields = [&](uint32_t sum) {
      return le<uint16_t>(20) + le<uint16_t>(e.flags.value_or(e.late_crc ? 8 : 0)) +
             le<uint16_t>(e.method.value_or(e.deflated ? 8 : 0)) + le<uint32_t>(0x21) + le(sum) +
             le(e.packed_size.value_or(static_cast<uint32_t>(data.size()))) +
             le(e.size.value_or(static_cast<uint32_t>(e.content.size()))) +
             le(static_cast<uint16_t>(e.name.size()));
    };
    const auto offset = static_cast<uint32_t>(out.size());
    out +=
        "PK\3\4" + fields(e.late_crc ? 0 : e.crc.value_or(crc)) + le<uint16_t>(0) + e.name + data;
    if (e.late_crc)
      out += "PK\7\x08" + le(crc) + le(static_cast<uint32_t>(data.size())) +
             le(static_cast<uint32_t>(e.content.size()));
    directory += "PK\1\2" + le<uint16_t>(0x031E) + fields(e.crc.value_or(crc)) + le<uint16_t>(0) +
                 le<uint16_t>(0) + le<uint32_t>(0) + le<uint32_t>(e.attributes) +
                 le(e.offset.value_or(offset)) + e.name;
  }
  const auto count = end.count.value_or(static_cast<uint16_t>(entries.size()));
  const auto begin = static_cast<uint32_t>(out.size());
  if (end.zip64) {
    const auto at = static_cast<uint64_t>(out.size() + directory.size());
    directory += "PK\6\6" + le<uint64_t>(44) + le<uint32_t>(0x2D002D) + le<uint64_t>(0) +
                 le<uint64_t>(entries.size()) + le<uint64_t>(entries.size()) +
                 le<uint64_t>(directory.size()) + le<uint64_t>(begin) + "PK\6\7" + le<uint32_t>(0) +
                 le(at) + le<uint32_t>(1);
    return out + directory + "PK\5\6" + le<uint32_t>(0) + le(~uint32_t{0}) + le(~uint64_t{0}) +
           le<uint16_t>(0);
  }
  return out + directory + "PK\5\6" + le(end.disk.value_or(0)) + le<uint16_t>(0) + le(count) +
         le(count) + le(end.size.value_or(static_cast<uint32_t>(directory.size()))) +
         le(end.offset.value_or(begin)) + le(static_cast<uint16_t>(end.comment.size())) +
         end.comment;
}

}  // namespace fovea::testing

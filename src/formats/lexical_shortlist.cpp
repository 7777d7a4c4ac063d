#include "formats/lexical_shortlist.h"

#include <fmt/format.h>

#include <cstring>

#include "base/files.h"
#include "formats/byte_reader.h"

namespace fovea {
namespace {

constexpr uint64_t kMagic = 0xF11A48D5013417F5;
constexpr size_t kPrefix = 16;  // magic number and checksum, which the checksum omits

// Marian's checksum: boost's hash_combine over whole words of 64 bits.
uint64_t checksum(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    sum ^= word + 0x9E3779B9 + (sum << 6) + (sum >> 2);
  }
  return sum;
}

template <class T>
std::vector<T> read_list(ByteReader& reader, uint64_t count, const char* what) {
  reader.expect_items(count, sizeof(T), what);
  std::vector<T> values(count);
  const auto bytes = reader.take(count * sizeof(T), what);
  if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

}  // namespace

std::span<const uint32_t> LexicalShortlist::targets_of(size_t source) const {
  return std::span(targets).subspan(offsets[source], offsets[source + 1] - offsets[source]);
}

LexicalShortlist read_shortlist(const FileBytes& file) {
  ByteReader reader(file.bytes, file.path);
  const auto magic = reader.number<uint64_t>("the magic number");
  check(magic == kMagic, ExitCode::model, file.path, ": byte 0: magic number ",
        fmt::format("{:#x}", magic), "; binary shortlists of Marian begin with ",
        fmt::format("{:#x}", kMagic));
  const auto sum = reader.number<uint64_t>("the checksum");
  LexicalShortlist list;
  list.frequent = reader.number<uint64_t>("the number of frequent pieces");
  list.best = reader.number<uint64_t>("the number of best pieces");
  const auto offsets = reader.number<uint64_t>("the number of offsets");
  const auto targets = reader.number<uint64_t>("the number of targets");
  list.offsets = read_list<uint64_t>(reader, offsets, "offsets");
  list.targets = read_list<uint32_t>(reader, targets, "targets");
  reader.expect_end();
  const uint64_t found = checksum(file.bytes.subspan(kPrefix));
  check(found == sum, ExitCode::model, file.path, ": checksum: stored ",
        fmt::format("{:016x}, computed {:016x}; the file is damaged", sum, found));
  const auto expect = [&](bool ok, size_t source, const char* problem) {
    check(ok, ExitCode::model, file.path, ": source piece ", source, ": ", problem);
  };
  expect(offsets > 0 && list.offsets.front() == 0, 0, "its offset is not 0");
  for (size_t i = 0; i < list.sources(); ++i) {
    expect(list.offsets[i] <= list.offsets[i + 1] && list.offsets[i + 1] <= targets, i,
           "its targets end before they begin, or beyond the list");
    for (uint64_t j = list.offsets[i] + 1; j < list.offsets[i + 1]; ++j)
      expect(list.targets[j - 1] < list.targets[j], i, "its targets are not increasing");
  }
  expect(list.offsets.back() == targets, list.sources(), "there are targets of no source piece");
  return list;
}

std::string format_shortlist(const LexicalShortlist& shortlist) {
  std::string out;
  for (const uint64_t value :
       {kMagic, uint64_t{0}, shortlist.frequent, shortlist.best, uint64_t{shortlist.offsets.size()},
        uint64_t{shortlist.targets.size()}})
    append(out, value);
  for (const uint64_t offset : shortlist.offsets) append(out, offset);
  for (const uint32_t target : shortlist.targets) append(out, target);
  const uint64_t sum = checksum(as_byte_span(out).subspan(kPrefix));
  std::memcpy(&out[8], &sum, 8);
  return out;
}

}  // namespace fovea

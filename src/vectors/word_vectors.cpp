#include "vectors/word_vectors.h"

#include <fmt/format.h>

#include <bit>
#include <cassert>
#include <charconv>
#include <cstring>

#include "base/files.h"
#include "base/log.h"
#include "base/sip_hash.h"
#include "base/utf8.h"
#include "vectors/word_vectors_read.h"

namespace fovea {
namespace {

// Appends the shortest decimal number that reads back as the same float.
void append_number(std::string& line, float value) {
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  line.append(digits, end);
}

void append_text(std::string& line, std::string_view word, std::span<const float> vector) {
  line += word;
  for (const float value : vector) {
    line += ' ';
    append_number(line, value);
  }
}

void append_binary(std::string& line, std::string_view word, std::span<const float> vector) {
  static_assert(std::endian::native == std::endian::little);
  line += word;
  line += ' ';
  line.append(reinterpret_cast<const char*>(vector.data()), vector.size_bytes());
}

}  // namespace

std::string VectorCounts::summary() const {
  std::string text = fmt::format("kept {} of {} words", with_commas(kept), with_commas(read));
  const char* separator = ": ";
  const auto add = [&](int64_t count, const char* what, const std::string& first) {
    if (count == 0) return;
    text += fmt::format("{}{} {}", separator, with_commas(count), what);
    if (!first.empty()) text += fmt::format(" (first {})", first);
    separator = ", ";
  };
  add(unwanted, "not needed", "");
  add(duplicates, duplicates == 1 ? "duplicate" : "duplicates", first_duplicate);
  add(bad_utf8, "bad UTF-8", first_bad_utf8);
  return text;
}

WordVectors WordVectors::read(const std::string& path, const VectorReadOptions& options) {
  if (path == "-" || path.ends_with(".gz")) {
    check(options.format != VectorFormat::binary, ExitCode::usage, path,
          ": cannot read binary vectors from a .gz file or standard input; give an unpacked file");
    LineReader lines(path);
    return read_text_vectors(lines, 0, options);
  }
  const MappedFile file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                               file.bytes().size());
  return parse(bytes, path, options);
}

WordVectors WordVectors::parse(std::string_view bytes, const std::string& name,
                               const VectorReadOptions& options) {
  VectorFormat format = options.format;
  if (format == VectorFormat::automatic)
    format = looks_binary(bytes) ? VectorFormat::binary : VectorFormat::text;
  if (format == VectorFormat::binary) return read_binary_vectors(bytes, name, options);
  LineReader lines = LineReader::over(bytes, name);
  return read_text_vectors(lines, bytes.size(), options);
}

void WordVectors::write(const std::string& path, VectorFormat format) const {
  write_atomically(path, [&](AtomicFile& file) {
    file.write(fmt::format("{} {}\n", words(), size_));
    std::string line;
    for (int64_t i = 0; i < words(); ++i) {
      line.clear();
      check(word(i).find_first_of(" \t\n\r") == std::string_view::npos, ExitCode::data, path,
            ": the word '", printable(word(i)),
            "' has a blank, which the format does not allow; remove the word");
      format == VectorFormat::binary ? append_binary(line, word(i), vector(i))
                                     : append_text(line, word(i), vector(i));
      line += '\n';
      file.write(line);
    }
  });
}

bool WordVectors::add(std::string_view word, std::span<const float> vector) {
  assert(static_cast<int64_t>(vector.size()) == size_);
  const size_t slot = slot_of(word);
  if (slots_[slot] >= 0) return false;
  slots_[slot] = words();
  text_ += word;
  ends_.push_back(text_.size());
  values_.insert(values_.end(), vector.begin(), vector.end());
  if (2 * ends_.size() > slots_.size()) grow();
  return true;
}

std::string_view WordVectors::word(int64_t i) const {
  const size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(text_).substr(begin, ends_[i] - begin);
}

std::span<const float> WordVectors::vector(int64_t i) const {
  return std::span(values_).subspan(i * size_, size_);
}

int64_t WordVectors::find(std::string_view word) const { return slots_[slot_of(word)]; }

size_t WordVectors::slot_of(std::string_view word) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = TableHash()(word) & mask;
  while (slots_[slot] >= 0 && this->word(slots_[slot]) != word) slot = (slot + 1) & mask;
  return slot;
}

void WordVectors::grow() {
  slots_.assign(2 * slots_.size(), -1);
  for (int64_t i = 0; i < words(); ++i) slots_[slot_of(word(i))] = i;
}

}  // namespace fovea

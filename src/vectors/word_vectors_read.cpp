#include "vectors/word_vectors_read.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/check.h"
#include "base/utf8.h"

namespace fovea {
namespace {

constexpr std::string_view kBlanks = " \t";

// The first line of a file.
struct Header {
  int64_t words, size;
};

// Removes the first field of a line and returns it; empty at the end of the line.
std::string_view take_field(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view field = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(field.size());
  return field;
}

// Removes the last field of a line and returns it.
std::string_view take_last_field(std::string_view& line) {
  line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
  const std::string_view field = line.substr(line.find_last_of(kBlanks) + 1);
  line.remove_suffix(field.size());
  return field;
}

std::optional<int64_t> whole_number(std::string_view field) {
  int64_t value = 0;
  const char* last = field.data() + field.size();
  const auto parsed = std::from_chars(field.data(), last, value);
  if (parsed.ec == std::errc::result_out_of_range && parsed.ptr == last) return INT64_MAX;
  if (parsed.ec != std::errc() || parsed.ptr != last || field.empty()) return std::nullopt;
  return value;
}

// Parses a line of exactly two whole numbers.
std::optional<Header> header_of(std::string_view line) {
  const auto words = whole_number(take_field(line)), size = whole_number(take_field(line));
  if (!words || !size || !take_field(line).empty()) return std::nullopt;
  return Header{*words, *size};
}

std::optional<double> number(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  double value = 0;
  const char* last = field.data() + field.size();
  const auto parsed = std::from_chars(field.data(), last, value);
  if (parsed.ptr != last || field.empty() || parsed.ec == std::errc::invalid_argument)
    return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) return std::nan("");
  return value;
}

// Checks the sizes in the header against the size of the file. `width` is the minimum number of
// bytes per number.
void check_header(const Header& header, const std::string& name, size_t bytes, int64_t width) {
  check(header.size >= 1 && header.size <= WordVectors::kMaxSize, ExitCode::data, name,
        ":1: vectors ", "of ", header.size, " numbers, expected 1 to ", WordVectors::kMaxSize);
  check(header.words >= 1, ExitCode::data, name, ":1: the first line announces ", header.words,
        " words, expected at least one");
  check(bytes == 0 || header.words <= static_cast<int64_t>(bytes) / (width * header.size + 1),
        ExitCode::data, name, ":1: the first line announces ", header.words, " words with ",
        header.size, " numbers each, but the file has only ", bytes,
        " bytes; it is truncated or not a file of word vectors");
}

// A reader of the lines after the first: a word and `size` numbers. Some words in published files
// have blanks, so it reads the numbers from the end of the line.
class TextReader {
 public:
  TextReader(LineReader& lines, int64_t size) : lines_(lines), values_(size) {}

  void read(std::string_view line, VectorSink& sink) {
    std::string_view rest = line;
    for (size_t i = values_.size(); i-- > 0;) values_[i] = value_of(take_last_field(rest), line);
    const std::string_view word = trimmed(rest);
    std::string_view before = word;
    const std::string_view last = take_last_field(before);
    if (word.empty())
      fail(ExitCode::data, lines_.where(), ": no word before the ", values_.size(), " numbers; ",
           expected());
    if (!before.empty() && number(last))
      fail(ExitCode::data, lines_.where(), ": more than ", values_.size(), " numbers after '",
           printable(before, 40), "'; ", expected());
    sink.add(word, values_, lines_.where());
  }

 private:
  static std::string_view trimmed(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    return text.substr(0, text.find_last_not_of(kBlanks) + 1);
  }

  std::string expected() const {
    return "expected a word and " + std::to_string(values_.size()) +
           " numbers, separated by blanks";
  }

  float value_of(std::string_view field, std::string_view line) const {
    const auto value = number(field);
    if (!value)  // without check(), which would build a message for each number
      fail(ExitCode::data, lines_.where(), ": '", printable(field.empty() ? line : field, 40),
           "' is not a number; ", expected());
    const float narrow = static_cast<float>(*value);
    if (!std::isfinite(narrow))
      fail(ExitCode::data, lines_.where(), ": '", printable(field, 40),
           "' is not finite or too large, expected finite 32-bit floats");
    return narrow;
  }

  LineReader& lines_;
  std::vector<float> values_;
};

int64_t count_fields(std::string_view line) {
  int64_t fields = 0;
  while (!take_field(line).empty()) ++fields;
  return fields;
}

}  // namespace

void VectorSink::reserve(int64_t words) {
  if (options_.wanted) return;
  vectors_.ends_.reserve(words);
  vectors_.values_.reserve(words * vectors_.size());
}

void VectorSink::add(std::string_view word, std::span<const float> values,
                     const std::string& where) {
  VectorCounts& counts = vectors_.counts_;
  ++counts.read;
  check(!word.empty(), ExitCode::data, where, ": the word is empty; remove its vector");
  check(word.size() <= WordVectors::kMaxWordBytes, ExitCode::data, where, ": the word has ",
        word.size(), " bytes, expected at most ", WordVectors::kMaxWordBytes, "; remove it");
  std::string repaired;
  if (!is_utf8(word)) {
    check(options_.bad_utf8 != BadUtf8::fail, ExitCode::data, where, ": the word '",
          printable(word, 40), "' is not UTF-8; convert the file, or skip such words with ",
          "`bad_utf8` skip");
    if (counts.first_bad_utf8.empty()) counts.first_bad_utf8 = where;
    if (options_.bad_utf8 == BadUtf8::skip) {
      ++counts.bad_utf8;
      return;
    }
    repaired = replace_invalid_utf8(word);
    word = repaired;
  }
  if (options_.wanted && !options_.wanted(word)) {
    ++counts.unwanted;
  } else if (vectors_.add(word, values)) {
    ++counts.kept;
  } else {
    ++counts.duplicates;
    if (counts.first_duplicate.empty()) counts.first_duplicate = where;
  }
}

bool looks_binary(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const auto header = header_of(bytes.substr(0, std::min<size_t>(end, 100)));
  if (end == bytes.npos || end > 100 || !header) return false;
  std::string_view rest = bytes.substr(end + 1);
  rest.remove_prefix(std::min(rest.find(' '), rest.size()));
  rest = rest.substr(0, 4 * std::clamp<int64_t>(header->size, 1, WordVectors::kMaxSize) + 1);
  for (const char c : rest)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') return true;
  const size_t invalid = find_invalid_utf8(rest);
  return invalid != rest.npos && invalid + 4 < rest.size();  // else `rest` ends inside a character
}

WordVectors read_text_vectors(LineReader& lines, size_t bytes, const VectorReadOptions& options) {
  TextLine line;
  check(lines.next(line), ExitCode::data, lines.name(),
        ":1: the file is empty, expected word vectors");
  const auto check_length = [&] {
    check(!line.cut, ExitCode::data, lines.where(), ": the line is longer than ",
          LineReader::kLimit, " bytes; check that this is a text file of word vectors");
  };
  check_length();
  const auto header = header_of(line.text);
  if (header) check_header(*header, lines.name(), bytes, 2);
  const int64_t size = header ? header->size : count_fields(line.text) - 1;
  check(size >= 1 && size <= WordVectors::kMaxSize, ExitCode::data, lines.where(), ": ",
        count_fields(line.text),
        " fields, expected a word and its numbers, or the number of words and the ", "vector size");

  WordVectors vectors(size);
  VectorSink sink(vectors, options);
  if (header && bytes > 0) sink.reserve(header->words);
  TextReader reader(lines, size);
  if (!header) reader.read(line.text, sink);
  while (lines.next(line)) {
    check_length();
    if (line.text.find_first_not_of(kBlanks) == line.text.npos) continue;
    check(!header || vectors.counts().read < header->words, ExitCode::data, lines.where(),
          ": one more word than the ", header ? header->words : 0,
          " words that the first line announces; correct the first line");
    reader.read(line.text, sink);
  }
  check(!header || vectors.counts().read == header->words, ExitCode::data, lines.where(),
        ": the file ends after ", vectors.counts().read, " words, but its first line announces ",
        header ? header->words : 0, "; the file is truncated");
  return vectors;
}

WordVectors read_binary_vectors(std::string_view bytes, const std::string& name,
                                const VectorReadOptions& options) {
  const size_t line = bytes.substr(0, 100).find('\n');
  const auto header = header_of(bytes.substr(0, std::min(line, bytes.size())));
  check(line != bytes.npos && header, ExitCode::data, name,
        ":1: expected the number of words and the vector size, ",
        "as at the beginning of every binary file of word vectors");
  check_header(*header, name, bytes.size(), sizeof(float));
  const int64_t width = sizeof(float) * header->size;

  WordVectors vectors(header->size);
  VectorSink sink(vectors, options);
  sink.reserve(header->words);
  std::vector<float> values(header->size);
  size_t at = line + 1;
  const auto where = [&](size_t offset) { return name + ", byte " + std::to_string(offset); };
  for (int64_t i = 0; i < header->words; ++i) {
    while (at < bytes.size() && bytes[at] == '\n') ++at;
    const size_t end = bytes.find(' ', at);
    check(end != bytes.npos && end + 1 + width <= bytes.size(), ExitCode::data, where(at),
          ": the file ends within word ", i + 1, " of ", header->words, "; the file is truncated");
    const std::string_view word = bytes.substr(at, end - at);
    check(word.find('\n') == word.npos, ExitCode::data, where(at), ": a line end in word ", i + 1,
          "; the vector size is not ", header->size, " as in the first line");
    std::memcpy(values.data(), bytes.data() + end + 1, width);
    for (size_t k = 0; k < values.size(); ++k)
      if (!std::isfinite(values[k]))
        fail(ExitCode::data, where(end + 1 + 4 * k), ": number ", k + 1, " of '",
             printable(word, 40), "' is ", values[k], ", expected a finite number");
    sink.add(word, values, where(at));
    at = end + 1 + width;
  }
  check(bytes.find_first_not_of("\n\r ", at) == bytes.npos, ExitCode::data, where(at), ": ",
        bytes.size() - at, " bytes follow the ", header->words,
        " words that the first line announces; correct the first line");
  return vectors;
}

}  // namespace fovea

#include "text/foreign_segmentation.h"

#include <unicode/uchar.h>

#include <array>

#include "base/utf8.h"
#include "text/tokenization.h"

namespace fovea {
namespace {

constexpr std::string_view kWordEnd = "</w>";

bool is_python_space(char32_t c) {
  return u_isUWhiteSpace(static_cast<UChar32>(c)) || (c >= 0x1C && c <= 0x1F);
}

// The ends of the characters of a text.
std::vector<size_t> character_ends(std::string_view text) {
  std::vector<size_t> ends;
  const CodePoints points = code_points(text);
  for (auto c = points.begin(); c != points.end(); ++c)
    ends.push_back(c.offset() + static_cast<size_t>(c.length()));
  return ends;
}

// Appends the parts of a word, each as `part` returns it.
template <class Part>
void add_parts(std::string_view word, const std::vector<size_t>& ends, Part part) {
  size_t begin = 0;
  for (const size_t end : ends) {
    part(word.substr(begin, end - begin));
    begin = end;
  }
}

// subword-nmt's encode(): the symbols of a word.
std::vector<std::string> subwords(const ForeignSegmentation& how, std::string_view word) {
  std::vector<size_t> ends = character_ends(word);
  if (ends.size() == 1) return {std::string(word)};
  const std::string marked = std::string(word) + std::string(kWordEnd);
  if (!how.split_end) ends.pop_back();
  ends.push_back(marked.size());
  std::vector<std::string> result;
  add_parts(marked, how.merges->apply(marked, std::move(ends)),
            [&](std::string_view part) { result.emplace_back(part); });
  if (result.back() == kWordEnd) {
    result.pop_back();
  } else if (result.back().ends_with(kWordEnd)) {
    result.back().resize(result.back().size() - kWordEnd.size());
  }
  return result;
}

std::vector<std::string> subword_nmt(const ForeignSegmentation& how, std::string_view line) {
  std::vector<std::string> pieces;
  const auto add = [&](std::string_view text) {  // a piece may contain spaces other than " "
    for (const std::string_view word : python_words(text)) pieces.emplace_back(word);
  };
  while (!line.empty() && std::string_view("\r\n ").find(line.front()) != line.npos)
    line.remove_prefix(1);
  while (!line.empty() && std::string_view("\r\n ").find(line.back()) != line.npos)
    line.remove_suffix(1);
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) {
      std::vector<std::string> parts = subwords(how, line.substr(begin, end - begin));
      for (size_t i = 0; i + 1 < parts.size(); ++i) add(parts[i].append(kGlue));
      add(parts.back());
    }
    begin = end + 1;
  }
  return pieces;
}

std::vector<std::string> byte_bpe(const ForeignSegmentation& how, std::string_view line) {
  std::string text(line);
  if (how.prefix_blank && !line.empty() && line.front() != ' ') text.insert(0, " ");
  std::vector<std::string> pieces;
  for (const std::string_view word : gpt2_words(text)) {
    const std::string characters = byte_characters(word);
    add_parts(characters, how.merges->apply(characters, character_ends(characters)),
              [&](std::string_view part) { pieces.emplace_back(part); });
  }
  return pieces;
}

// GPT-2's classes of characters.
enum class Gpt2Class { letter, number, space, other };

Gpt2Class class_of(char32_t c) {
  const auto mask = U_GET_GC_MASK(static_cast<UChar32>(c));
  if (mask & U_GC_L_MASK) return Gpt2Class::letter;
  if (mask & U_GC_N_MASK) return Gpt2Class::number;
  return u_isUWhiteSpace(static_cast<UChar32>(c)) ? Gpt2Class::space : Gpt2Class::other;
}

// The length of 's, 't, 're, 've, 'm, 'll or 'd at the start of a text; 0 if there is none.
size_t contraction(std::string_view text) {
  for (const std::string_view end : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(end)) return end.size();
  return 0;
}

// The characters for bytes, by byte.
const std::array<char32_t, 256>& byte_table() {
  static const std::array<char32_t, 256> table = [] {
    std::array<char32_t, 256> characters{};
    char32_t next = 0x100;
    for (char32_t b = 0; b < 256; ++b) {
      const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      characters[b] = printable ? b : next++;
    }
    return characters;
  }();
  return table;
}

}  // namespace

std::vector<std::string_view> python_words(std::string_view line) {
  std::vector<std::string_view> words;
  const CodePoints points = code_points(line);
  size_t begin = 0;
  for (auto c = points.begin(); c != points.end(); ++c) {
    if (!is_python_space(*c)) continue;
    if (c.offset() > begin) words.push_back(line.substr(begin, c.offset() - begin));
    begin = c.offset() + static_cast<size_t>(c.length());
  }
  if (line.size() > begin) words.push_back(line.substr(begin));
  return words;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::vector<std::string_view> gpt2_words(std::string_view line) {
  std::vector<size_t> starts;
  std::vector<Gpt2Class> classes;
  const CodePoints points = code_points(line);
  for (auto c = points.begin(); c != points.end(); ++c) {
    starts.push_back(c.offset());
    classes.push_back(class_of(*c));
  }
  const size_t n = starts.size();
  starts.push_back(line.size());
  std::vector<std::string_view> words;
  for (size_t at = 0, end = 0; at < n; at = end) {
    const auto add = [&] { words.push_back(line.substr(starts[at], starts[end] - starts[at])); };
    if (const size_t ascii = contraction(line.substr(starts[at])); ascii > 0) {
      end = at + ascii;
      add();
      continue;
    }
    const bool blank = line[starts[at]] == ' ' && at + 1 < n && classes[at + 1] != Gpt2Class::space;
    const size_t first = at + blank;
    end = first;
    while (end < n && classes[end] == classes[first]) ++end;
    // Spaces before a word leave the last one to the word, or to the next match.
    if (classes[first] == Gpt2Class::space && end < n && end - at > 1) --end;
    add();
  }
  return words;
}

std::string byte_characters(std::string_view bytes) {
  std::string text;
  for (const char b : bytes) append_utf8(text, byte_table()[static_cast<unsigned char>(b)]);
  return text;
}

std::string bytes_of_characters(std::string_view text) {
  static const std::unordered_map<char32_t, char> bytes = [] {
    std::unordered_map<char32_t, char> result;
    for (size_t b = 0; b < 256; ++b) result.emplace(byte_table()[b], static_cast<char>(b));
    return result;
  }();
  std::string result;
  for (const char32_t c : code_points(text)) {
    const auto found = bytes.find(c);
    if (found == bytes.end()) {
      append_utf8(result, c);
    } else {
      result += found->second;
    }
  }
  return result;
}

std::vector<std::string> ForeignSegmentation::pieces(std::string_view line) const {
  switch (cut) {
    case ForeignCut::subword_nmt:
      return subword_nmt(*this, line);
    case ForeignCut::byte_bpe:
      return byte_bpe(*this, line);
    case ForeignCut::pieces:
      break;
  }
  std::vector<std::string> result;
  for (const std::string_view word : python_words(line)) result.emplace_back(word);
  return result;
}

}  // namespace fovea

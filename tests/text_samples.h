#pragma once

// Random and fixed text for tests of parsers.

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/utf8.h"
#include "temporary.h"
#include "text/vocabulary_build.h"

namespace fovea::samples {

struct Folder : TemporaryFolder {
  // Writes the bytes and returns the path.
  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
};

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Words of one to four syllables, so that a vocabulary can learn pieces.
inline std::string sentence(Random& random, int words) {
  static const char* const syllables[] = {"ba",  "ko",  "li",  "mu",  "ne",  "ra",  "sta", "tü",
                                          "ver", "ung", "häu", "ing", "the", "ein", "lo",  "x"};
  std::string text;
  for (int w = 0; w < words; ++w) {
    if (w > 0) text += ' ';
    for (uint64_t n = 1 + random.below(4); n > 0; --n) text += syllables[random.below(16)];
  }
  return text;
}

// Random code points of all planes, letters, blanks, marks and reserved names, as valid UTF-8.
inline std::string wild(Random& random) {
  static const char* const parts[] = {"<s>", "</s>",   "<pad>",   "<unk>", "@@",
                                      "@@ ", "\u2581", "e\u0301", " ",     "  ",
                                      "\t",  "\u00A0", "\u2028",  "<0x41>"};
  std::string text;
  for (uint64_t n = random.below(12); n > 0; --n) {
    const uint64_t kind = random.below(4);
    if (kind == 0) {
      text += parts[random.below(std::size(parts))];
    } else if (kind == 1) {
      auto c = static_cast<char32_t>(random.below(random.below(2) ? 0x110000 : 0x3000));
      if (c >= 0xD800 && c < 0xE000) c = U'x';
      append_utf8(text, c);
    } else {
      text += sentence(random, 1);
    }
  }
  return text;
}

// Random bytes without LF.
inline std::string noise(Random& random) {
  std::string text;
  for (uint64_t n = random.below(12); n > 0; --n) {
    const char c = static_cast<char>(random.below(256));
    text += c == '\n' ? 'n' : c;
  }
  return text;
}

inline std::string corpus(int lines, uint64_t seed = 1) {
  Random random(seed);
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += sentence(random, 1 + static_cast<int>(random.below(12))) + "\n";
  return text;
}

// A small model, learned once. With byte fallback no character is unknown.
inline Vocabulary small_model(SubwordModel model, bool byte_fallback = true) {
  static std::map<std::pair<SubwordModel, bool>, std::optional<Vocabulary>> learnt;
  std::optional<Vocabulary>& known = learnt[{model, byte_fallback}];
  if (known) return *known;
  const Folder folder;
  SentencePieceOptions options;
  options.model = model;
  options.size = byte_fallback ? 400 : 150;
  options.byte_fallback = byte_fallback;
  known = train_sentencepiece({folder.write("text", corpus(2000))}, options);
  return *known;
}

}  // namespace fovea::samples

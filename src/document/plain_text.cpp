#include "document/plain_text.h"

#include <cassert>

namespace fovea {
namespace {

std::string one_line(const std::string& text) {
  constexpr const char* kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  std::string line;
  for (const char c : text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin)) {
    const bool ends = c == '\n' || c == '\r';
    if (!ends || line.back() != ' ') line += ends ? ' ' : c;
  }
  return line;
}

}  // namespace

PlainTextLines::PlainTextLines(std::span<const std::string> lines, const PassageOptions& options) {
  for (const std::string& line : lines) {
    documents_.push_back(plain_document(line, options));
    for (const std::string& sentence : documents_.back()->sentences()) {
      sentences_.push_back(sentence);
      lines_.push_back(documents_.size() - 1);
    }
  }
}

std::vector<std::string> PlainTextLines::join(std::span<const Translation> translations) const {
  assert(translations.size() == sentences_.size());
  std::vector<std::string> joined;
  for (const auto& document : documents_) {
    const size_t count = document->sentences().size();
    joined.push_back(one_line(document->render(translations.first(count), 0)));
    translations = translations.subspan(count);
  }
  return joined;
}

}  // namespace fovea

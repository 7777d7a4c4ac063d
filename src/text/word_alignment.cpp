#include "text/word_alignment.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace fovea {
namespace {

constexpr int kLargest = 1'000'000;  // maximum index of a word
constexpr std::string_view kBlanks = " \t";

// A link of a line, and the character between its two numbers.
struct Token {
  Link link;
  char mark;
};

void sort_unique(Links& links) {
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
}

// Reads a number at the beginning of `text` and removes it; −1 if there is no number.
int take_number(std::string_view& text) {
  int number = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || number > kLargest || text.front() == '-') return -1;
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  return number;
}

bool is_probability(std::string_view text) {
  double p = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), p);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

// Parses a link such as "3-5", "3p5" or "3-5:0.25". `marks` are the allowed characters between the
// numbers.
Token parse_token(std::string_view text, std::string_view marks, const std::string& where,
                  CountedFrom from) {
  const std::string found(text.substr(0, 40));
  const auto fail_link = [&] {
    fail(ExitCode::data, where, ": '", found, "' is not a link, expected two numbers such as 3-5",
         marks.size() > 1 ? " (sure) or 3p5 (possible)" : "",
         ", separated by blanks; correct the line");
  };
  const int source = take_number(text);
  const char mark = text.empty() ? ' ' : text.front();
  if (source < 0 || marks.find(mark) == marks.npos) fail_link();
  text.remove_prefix(1);
  const int target = text.empty() ? -1 : take_number(text);
  if (target < 0) fail_link();
  if (!text.empty() && !(text.front() == ':' && is_probability(text.substr(1)))) fail_link();
  const int first = static_cast<int>(from);
  check(source >= first && target >= first, ExitCode::data, where, ": link '", found,
        "' has word 0, expected numbers from 1; if the file counts from 0, set `gold_from` 0");
  return {{source - first, target - first}, mark};
}

std::vector<Token> parse_line(std::string_view line, std::string_view marks,
                              const std::string& where, CountedFrom from) {
  std::vector<Token> tokens;
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (line.empty()) return tokens;
    const size_t end = std::min(line.find_first_of(kBlanks), line.size());
    tokens.push_back(parse_token(line.substr(0, end), marks, where, from));
    line.remove_prefix(end);
  }
}

bool next_line(LineReader& reader, TextLine& line) {
  if (!reader.next(line)) return false;
  check(!line.cut, ExitCode::data, reader.where(), ": the line is longer than ", kLongestLinks,
        " bytes; check that this is a file of word alignments");
  return true;
}

template <class T>
std::vector<T> read_links(const std::string& path, CountedFrom from,
                          T parse(std::string_view, const std::string&, CountedFrom)) {
  LineReader reader(path, kLongestLinks);
  std::vector<T> pairs;
  for (TextLine line; next_line(reader, line);)
    pairs.push_back(parse(line.text, reader.where(), from));
  return pairs;
}

}  // namespace

Links parse_pharaoh(std::string_view line, const std::string& where, CountedFrom from) {
  Links links;
  for (const Token& token : parse_line(line, "-", where, from)) links.push_back(token.link);
  sort_unique(links);
  return links;
}

GoldLinks parse_talp(std::string_view line, const std::string& where, CountedFrom from) {
  GoldLinks gold;
  for (const Token& token : parse_line(line, "-p", where, from)) {
    gold.possible.push_back(token.link);
    if (token.mark == '-') gold.sure.push_back(token.link);
  }
  sort_unique(gold.sure);
  sort_unique(gold.possible);
  return gold;
}

std::vector<Links> read_pharaoh(const std::string& path, CountedFrom from) {
  return read_links(path, from, parse_pharaoh);
}

std::vector<GoldLinks> read_talp(const std::string& path, CountedFrom from) {
  return read_links(path, from, parse_talp);
}

bool next_pharaoh(LineReader& reader, Links& links) {
  TextLine line;
  if (!next_line(reader, line)) return false;
  links = parse_pharaoh(line.text, reader.where());
  return true;
}

}  // namespace fovea

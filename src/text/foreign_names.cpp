#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/check.h"
#include "base/sip_hash.h"
#include "base/utf8.h"
#include "text/foreign_segmentation.h"
#include "text/foreign_vocabulary.h"
#include "text/nested_json.h"

namespace fovea {
namespace {

constexpr int64_t kMaxNames = 1 << 20;
constexpr size_t kMaxGap = 1024;  // ids without a piece, beyond the number of pieces

// Names by id. Ids may have gaps, whose names are "".
class NamesById {
 public:
  explicit NamesById(std::string where) : where_(std::move(where)) {}

  void add(std::string_view piece, int64_t id, int64_t line) {
    if (id < 0 || id >= kMaxNames) fail_at(line, piece, id, ", expected an id from 0 to 1,048,575");
    const auto at = static_cast<size_t>(id);
    if (at >= names_.size()) {
      names_.resize(at + 1);
      used_.resize(at + 1, false);
    }
    if (used_[at]) fail_at(line, piece, id, ", which another piece has");
    used_[at] = true;
    ++count_;
    names_[at] = piece;
  }

  std::vector<std::string> take() {
    check(!names_.empty(), ExitCode::model, where_,
          ": no pieces; use the file that belongs to the model");
    check(names_.size() <= 2 * count_ + kMaxGap, ExitCode::model, where_, ": ", count_,
          " pieces have ids up to ", names_.size() - 1, "; use the file that belongs to the model");
    return std::move(names_);
  }

 private:
  [[noreturn]] void fail_at(int64_t line, std::string_view piece, int64_t id,
                            const char* expected) const {
    fail(ExitCode::model, where_, line > 0 ? ":" + std::to_string(line) : "", ": piece '",
         printable(piece), "' has the id ", id, expected,
         "; use the file that belongs to the model");
  }

  std::string where_;
  std::vector<std::string> names_;
  std::vector<bool> used_;
  size_t count_ = 0;
};

// Splits off the first line, which ends with LF, CR LF or CR as in Python.
std::string_view take_line(std::string_view& bytes) {
  const size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(
      std::min(end + (bytes.substr(end).starts_with("\r\n") ? 2 : 1), bytes.size()));
  return line;
}

void check_utf8(std::string_view bytes, const std::string& name) {
  const size_t bad = find_invalid_utf8(bytes);
  check(bad == bytes.npos, ExitCode::model, name, ": byte ", bad,
        " is not UTF-8; use the file that belongs to the model");
}

bool is_integer(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

}  // namespace

std::vector<std::string> json_names(std::string_view json, const std::string& name) {
  const nlohmann::json root = read_nested_json(json, name);
  NamesById names(name);
  int64_t next = 0;
  if (root.is_array()) {
    for (const auto& piece : root) {
      check(piece.is_string(), ExitCode::model, name, ": entry ", next,
            " is not a string; use the file that belongs to the model");
      names.add(piece.get_ref<const std::string&>(), next, 0);
      ++next;
    }
    return names.take();
  }
  check(root.is_object(), ExitCode::model, name,
        ": expected an object of pieces and ids, or a list of pieces; use the file that belongs to "
        "the model");
  for (const auto& [piece, id] : root.items()) {
    check(id.is_number_integer(), ExitCode::model, name, ": piece '", printable(piece),
          "' has no whole number as its id; use the file that belongs to the model");
    names.add(
        piece,
        id.is_number_unsigned() && id.get<uint64_t>() > kMaxNames ? kMaxNames : id.get<int64_t>(),
        0);
  }
  return names.take();
}

std::vector<std::string> line_names(std::string_view text, const std::string& name) {
  check_utf8(text, name);
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    names.emplace_back(line);
    check(names.size() <= kMaxNames, ExitCode::model, name, ": more than 1,048,576 pieces");
  }
  check(!names.empty(), ExitCode::model, name,
        ": no pieces; use the file that belongs to the model");
  return names;
}

std::vector<std::string> fairseq_names(std::string_view dict, const std::string& name) {
  check_utf8(dict, name);
  std::vector<std::string> names{"<s>", "<pad>", "</s>", "<unk>"};
  std::unordered_map<std::string, size_t, TableHash> ids;
  for (size_t id = 0; id < names.size(); ++id) ids.emplace(names[id], id);
  const size_t specials = names.size();
  for (int64_t number = 1; !dict.empty(); ++number) {
    const std::string_view line = take_line(dict);
    const auto fail_line = [&](const char* found) {
      fail(ExitCode::model, name, ":", number, ": '", printable(line), "' ", found,
           "; use the dictionary that belongs to the model");
    };
    const auto words = python_words(line);
    std::string_view rest = words.empty() ? "" : line.substr(0, words.back().end() - line.begin());
    const bool overwrite = rest.ends_with(" #fairseq:overwrite");
    if (overwrite) rest.remove_suffix(std::string_view(" #fairseq:overwrite").size());
    const size_t blank = rest.rfind(' ');
    if (blank == rest.npos || !is_integer(rest.substr(blank + 1)))
      fail_line("is not a symbol, a blank and a count");
    const std::string symbol(rest.substr(0, blank));
    const auto [known, added] = ids.emplace(symbol, names.size());
    if (!added && !overwrite) fail_line("occurs before");
    if (!added) {
      if (known->second >= specials) names[known->second].clear();
      known->second = names.size();
    }
    names.push_back(symbol);
    check(names.size() <= kMaxNames, ExitCode::model, name, ": more than 1,048,576 symbols");
  }
  return names;
}

namespace {

// The character of a YAML escape without digits; -1 if there is none.
int simple_escape(char c) {
  constexpr std::string_view kFrom = "0abtnvfre \"/\\";
  constexpr std::string_view kTo("\0\a\b\t\n\v\f\r\x1B \"/\\", 13);
  const size_t at = kFrom.find(c);
  return at == kFrom.npos ? -1 : static_cast<unsigned char>(kTo[at]);
}

// Reads a YAML string in quotes and removes it from the line; false if it is damaged.
bool take_quoted(std::string_view& line, std::string& text) {
  const char quote = line.front();
  for (line.remove_prefix(1); !line.empty(); line.remove_prefix(1)) {
    const char c = line.front();
    if (c == quote && quote == '\'' && line.substr(1).starts_with('\'')) {
      line.remove_prefix(1);
    } else if (c == quote) {
      line.remove_prefix(1);
      return true;
    } else if (c == '\\' && quote == '"') {
      line.remove_prefix(1);
      if (line.empty()) return false;
      const char kind = line.front();
      const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
      if (digits == 0) {
        if (simple_escape(kind) < 0) return false;
        text += static_cast<char>(simple_escape(kind));
        continue;
      }
      uint32_t code = 0;
      if (line.size() <= digits) return false;
      const char* end = line.data() + 1 + digits;
      if (std::from_chars(line.data() + 1, end, code, 16).ptr != end || code > 0x10FFFF ||
          (code >= 0xD800 && code < 0xE000))
        return false;
      append_utf8(text, code);
      line.remove_prefix(digits);
      continue;
    }
    text += c;
  }
  return false;
}

}  // namespace

std::vector<std::string> marian_names(std::string_view yaml, const std::string& name) {
  check_utf8(yaml, name);
  const size_t first = yaml.find_first_not_of(" \t\r\n");
  if (first != yaml.npos && yaml[first] == '{') return json_names(yaml, name);
  NamesById names(name);
  for (int64_t number = 1; !yaml.empty(); ++number) {
    std::string_view line = take_line(yaml);
    if (line.empty() || line.starts_with('#') || line == "---") continue;
    std::string piece;
    bool valid = true;
    if (line.starts_with('"') || line.starts_with('\'')) {
      valid = take_quoted(line, piece) && line.starts_with(": ");
    } else {
      const size_t colon = line.rfind(": ");
      valid = colon != line.npos && colon > 0;
      if (valid) {
        piece = line.substr(0, line.find_last_not_of(' ', colon - 1) + 1);
        line.remove_prefix(colon);
      }
    }
    int64_t id = -1;
    if (valid) {
      line.remove_prefix(2);
      line = line.substr(std::min(line.find_first_not_of(' '), line.size()));
      line = line.substr(0, line.find_last_not_of(' ') + 1);
      const auto parsed = std::from_chars(line.data(), line.data() + line.size(), id);
      valid = parsed.ec == std::errc() && parsed.ptr == line.data() + line.size();
    }
    check(valid, ExitCode::model, name, ":", number,
          ": expected a piece, a colon, a blank and an id; use a vocabulary that Marian wrote");
    names.add(piece, id, number);
  }
  return names.take();
}

}  // namespace fovea

#include "base/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/ascii.h"
#include "base/utf8.h"

namespace fovea {
namespace {

constexpr size_t kMaxKey = 256;

// A receiver of the parser's events that stores the leaves of the document as YamlEntry values. It
// checks each event before it stores anything.
class Flattener : public YAML::EventHandler {
 public:
  Flattener(const std::string& source, ExitCode code, int max_depth)
      : source_(source), code_(code), max_depth_(max_depth) {}

  std::vector<YamlEntry> take() { return std::move(entries_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fault(mark, "a second document begins here, one is expected");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (levels_.empty()) return;  // an empty document
    value(mark, YamlEntry::Kind::null, "");
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_anchor(mark, 1); }

  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_anchor(mark, anchor);
    if (levels_.empty()) fault(mark, "found a value, expected 'key: value' lines");
    value(mark, YamlEntry::Kind::scalar, text);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    if (levels_.empty()) fault(mark, "found a list, expected 'key: value' lines");
    if (levels_.back().list) fault(mark, levels_.back().path + ": a list within a list");
    if (!levels_.back().key_seen) fault(mark, "a list is used as a key");
    levels_.back().key_seen = false;
    add(mark, levels_.back().path, YamlEntry::Kind::list);
    push(mark, {levels_.back().path, true, false});
  }
  void OnSequenceEnd() override { pop(); }

  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    if (levels_.empty()) return push(mark, {"", false, false});
    if (levels_.back().list)
      fault(mark, levels_.back().path + ": a map within a list; is the ']' of the list missing?");
    if (!levels_.back().key_seen) fault(mark, "a map is used as a key");
    levels_.back().key_seen = false;
    push(mark, {levels_.back().path, false, false});
  }
  void OnMapEnd() override {
    const Level level = std::move(levels_.back());
    pop();
    if (levels_.empty() || level.path.size() > level.stem) return;
    add(level.begin, level.path, YamlEntry::Kind::null);  // `key: {}` means the same as `key:`
    entries_.back().items.push_back("");
  }

  [[noreturn]] void fault(const YAML::Mark& mark, const std::string& what) const {
    fail(code_, source_, ":", std::max(mark.line, 0) + 1, ": ", what);
  }

 private:
  // A map or list whose end is not yet read. In a map, `path` ends with the last key so far.
  struct Level {
    std::string path;
    bool list, key_seen;
    size_t stem = 0;
    YAML::Mark begin = {};
  };

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) fault(mark, "anchors and aliases (& and *) are not allowed here");
  }

  void push(const YAML::Mark& mark, Level level) {
    if (static_cast<int>(levels_.size()) >= max_depth_)
      fault(mark, fmt::format("nested more than {} levels deep", max_depth_));
    level.stem = level.path.size();
    level.begin = mark;
    levels_.push_back(std::move(level));
  }
  void pop() { levels_.pop_back(); }

  void value(const YAML::Mark& mark, YamlEntry::Kind kind, const std::string& text) {
    Level& level = levels_.back();
    if (level.list) {
      if (kind == YamlEntry::Kind::null) fault(mark, level.path + ": a list item is empty");
      entries_.back().items.push_back(text);
    } else if (level.key_seen) {
      level.key_seen = false;
      add(mark, level.path, kind);
      entries_.back().items.push_back(text);
    } else {
      if (text.empty() || text.size() > kMaxKey)
        fault(mark, fmt::format("a key of {} bytes, 1 to {} are expected", text.size(), kMaxKey));
      level.path.resize(level.stem);
      level.path += (level.stem == 0 ? "" : ".") + text;
      level.key_seen = true;
    }
  }

  void add(const YAML::Mark& mark, const std::string& path, YamlEntry::Kind kind) {
    if (!seen_.insert(path).second) fault(mark, printable(path) + " is given twice");
    entries_.push_back({path, mark.line + 1, kind, {}});
  }

  const std::string& source_;
  ExitCode code_;
  int max_depth_, documents_ = 0;
  std::vector<Level> levels_;
  std::vector<YamlEntry> entries_;
  std::set<std::string> seen_;
};

constexpr const char* kTab =
    "a tab indents this line, which YAML does not allow; indent with spaces";

// Whether a tab indents the line that yaml-cpp could not read. yaml-cpp takes such a tab as part of
// a value and reports an error at a later place.
bool tab_indents(std::string_view text, int64_t line) {
  for (; line > 0 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const size_t first = text.find_first_not_of(' ');
  return first != std::string_view::npos && text[first] == '\t';
}

// Translates an error of yaml-cpp into a message with a remedy. yaml-cpp notices an unclosed
// bracket only at the next item or at the end of the file. So the reported line may be later than
// the bracket.
std::string explain_error(const std::string& message) {
  namespace Errors = YAML::ErrorMsg;
  const std::pair<const char*, const char*> kMessages[] = {
      {Errors::END_OF_MAP_FLOW, "a '{' is not closed by '}', or a ',' is missing before this"},
      {Errors::END_OF_SEQ_FLOW, "a '[' is not closed by ']', or a ',' is missing before this"},
      {Errors::FLOW_END,
       "a '}' or ']' without an opening bracket; remove it or add the opening bracket"},
      {Errors::END_OF_MAP, "expected 'name: value' as above; indent the lines of a section alike"},
      {Errors::END_OF_SEQ, "expected '- item' as above; indent the items of a list alike"},
      {Errors::MAP_VALUE,
       "a ':' is not allowed here; put a value with ': ' in quotes, and each 'name: value' on a "
       "separate line"},
      {Errors::MAP_KEY, "a name is not allowed here; put each 'name: value' on a separate line"},
      {Errors::BLOCK_ENTRY,
       "a '- ' is not allowed here; put the items of a list on separate lines"},
      {Errors::EOF_IN_SCALAR, "a quote is not closed before the end of the file"},
      {Errors::TAB_IN_INDENTATION, kTab},
      {Errors::UNKNOWN_TOKEN, "a character that cannot begin a value; put the value in quotes"},
  };
  for (const auto& [theirs, ours] : kMessages)
    if (message == theirs) return ours;
  return "invalid YAML: " + message;
}

bool is_bare(std::string_view text) {
  constexpr std::string_view kReserved = " true false yes no on off null y n ";
  const auto plain = [](char c) {
    return is_ascii_alnum(c) || c == '_' || c == '.' || c == '/' || c == '-';
  };
  if (text.empty() || !(is_ascii_letter(text[0]) || text[0] == '/')) return false;
  return std::ranges::all_of(text, plain) && !list_has(kReserved, lower_ascii(text));
}

}  // namespace

std::vector<YamlEntry> read_yaml(std::string_view text, const std::string& source, ExitCode code,
                                 int max_depth) {
  const size_t bad = find_invalid_utf8(text);
  if (bad != std::string_view::npos)
    fail(code, source, ":", std::ranges::count(text.substr(0, bad), '\n') + 1, ": byte ", bad,
         " is not UTF-8");
  Flattener events(source, code, max_depth);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(events)) {
    }
  } catch (const YAML::Exception& error) {
    const bool tab = tab_indents(text, error.mark.line);
    const size_t end = std::min(text.find_last_not_of(" \t\r\n"), text.size());
    YAML::Mark mark = error.mark;  // moved back to the last line with text, if it is after that
    mark.line =
        std::min(mark.line, static_cast<int>(std::ranges::count(text.substr(0, end), '\n')));
    events.fault(mark, tab ? kTab : explain_error(error.msg));
  }
  return events.take();
}

std::string yaml_string(std::string_view text) {
  if (is_bare(text)) return std::string(text);
  std::string out = "\"";
  for (const char32_t c : code_points(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      append_utf8(out, c);
    }
  }
  return out + "\"";
}

}  // namespace fovea

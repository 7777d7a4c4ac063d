#include "base/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/edit_distance.h"
#include "base/files.h"
#include "base/utf8.h"
#include "base/yaml.h"

namespace fovea {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Parses the whole text as a number. Uses from_chars because, unlike strtod, it does not depend on
// the locale.
template <class Number>
bool parse(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  Number parsed{};
  const auto result = std::from_chars(text.data(), end, parsed);
  if (result.ec != std::errc() || result.ptr != end) return false;
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(parsed)) return false;
  value = parsed;
  return true;
}

bool parse(const std::string& text, bool& value) {
  const bool yes = text == "true" || text == "yes" || text == "on";
  if (!yes && text != "false" && text != "no" && text != "off") return false;
  value = yes;
  return true;
}

bool parse(const std::string& text, std::string& value) {
  value = text;
  return true;
}

template <class T>
std::string print(const T& value) {
  return fmt::format("{}", value);
}
std::string print(const std::string& value) { return yaml_string(value); }
std::string print(const std::vector<std::string>& values) {
  std::vector<std::string> items;
  for (const std::string& v : values) items.push_back(yaml_string(v));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

template <class T>
constexpr const char* kind() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_integral_v<T>) return "an integer";
  if constexpr (std::is_floating_point_v<T>) return "a number";
  if constexpr (std::is_same_v<T, std::string>) return "a string";
  return "a list of strings";
}

std::string_view last_key(std::string_view path) { return path.substr(path.rfind('.') + 1); }

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    items.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

void append_comment(std::string& out, const std::string& indent, std::string_view help) {
  while (!help.empty()) {
    const size_t end = std::min(help.find('\n'), help.size());
    out += fmt::format("{}# {}\n", indent, help.substr(0, end));
    help.remove_prefix(std::min(end + 1, help.size()));
  }
}

std::string located(const std::string& source, int64_t line) {
  return line > 0 ? fmt::format("{}:{}", source, line) : source;
}

}  // namespace

SettingField& SettingField::between(double low, double high) {
  low_ = low;
  high_ = high;
  return *this;
}
SettingField& SettingField::at_least(double low) { return between(low, kInfinity); }
SettingField& SettingField::above(double low) {
  low_excluded_ = true;
  return between(low, kInfinity);
}

SettingField& SettingField::or_word(const std::string& word, int64_t number) {
  named_ = static_cast<double>(number);
  expected_ += " or " + word;
  assign_ = [assign = assign_, word, as_text = std::to_string(number)](const Items& items) {
    return assign(items.at(0) == word ? Items{as_text} : items);
  };
  print_ = [print = print_, number = number_, word, named = named_] {
    return number() == named ? word : print();
  };
  return *this;
}

bool SettingField::in_range() const {
  if (!number_) return true;
  const double x = number_();
  if (x == named_) return true;
  return x >= low_ && x <= high_ && !(low_excluded_ && x == low_);
}

std::string SettingField::range() const {
  if (low_excluded_) return fmt::format("more than {}", low_);
  if (high_ == kInfinity) return fmt::format("at least {}", low_);
  if (low_ == -kInfinity) return fmt::format("at most {}", high_);
  return fmt::format("{} to {}", low_, high_);
}

SettingField& Settings::add(std::string_view name, std::string_view help) {
  auto field = std::make_unique<SettingField>();
  field->path_ = prefix_ + std::string(name);
  field->help_ = help;
  field->between(-kInfinity, kInfinity);
  check(find(field->path_) == nullptr, ExitCode::unexpected, "setting ", field->path_,
        " is described twice");
  fields_.push_back(std::move(field));
  return *fields_.back();
}

template <class T>
SettingField& Settings::field(std::string_view name, T& value, std::string_view help) {
  SettingField& f = add(name, help);
  f.expected_ = kind<T>();
  f.print_ = [&value] { return print(value); };
  if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    f.list_ = true;
    f.assign_ = [&value](const SettingField::Items& items) {
      value = items;
      return true;
    };
  } else {
    f.assign_ = [&value](const SettingField::Items& items) { return parse(items.at(0), value); };
  }
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
    f.number_ = [&value] { return static_cast<double>(value); };
  return f;
}

template SettingField& Settings::field(std::string_view, bool&, std::string_view);
template SettingField& Settings::field(std::string_view, int&, std::string_view);
template SettingField& Settings::field(std::string_view, int64_t&, std::string_view);
template SettingField& Settings::field(std::string_view, uint64_t&, std::string_view);
template SettingField& Settings::field(std::string_view, float&, std::string_view);
template SettingField& Settings::field(std::string_view, double&, std::string_view);
template SettingField& Settings::field(std::string_view, std::string&, std::string_view);
template SettingField& Settings::field(std::string_view, std::vector<std::string>&,
                                       std::string_view);

SettingField& Settings::choice(std::string_view name, std::string& value,
                               std::vector<std::string> names, std::string_view help) {
  const std::vector<std::string> stored = names;
  return add_choice(
      name, std::move(names), help, [&value, stored](size_t i) { value = stored[i]; },
      [&value] { return value; });
}

SettingField& Settings::add_choice(std::string_view name, std::vector<std::string> names,
                                   std::string_view help, std::function<void(size_t)> store,
                                   std::function<std::string()> load) {
  SettingField& f = add(name, help);
  f.expected_ = fmt::format("one of {}", fmt::join(names, ", "));
  f.names_ = names;
  f.help_ += fmt::format("{}{}", help.empty() ? "" : ": ", fmt::join(names, ", "));
  f.print_ = [load = std::move(load)] { return yaml_string(load()); };
  f.assign_ = [names = std::move(names),
               store = std::move(store)](const SettingField::Items& items) {
    const auto at = std::ranges::find(names, items.at(0));
    if (at == names.end()) return false;
    store(static_cast<size_t>(at - names.begin()));
    return true;
  };
  return f;
}

void Settings::open_group(std::string_view name, std::string_view help) {
  groups_.emplace_back(prefix_ + std::string(name), help);
  prefix_ += std::string(name) + ".";
}

void Settings::close_group() {
  prefix_.pop_back();
  prefix_.resize(prefix_.rfind('.') + 1);  // if there is no other '.', npos + 1 is 0
}

void Settings::when(const std::function<bool()>& condition, const std::string& belongs_to,
                    const std::function<void()>& describe) {
  const size_t first = fields_.size();
  describe();
  for (size_t i = first; i < fields_.size(); ++i) {
    fields_[i]->applies_ = condition;
    fields_[i]->belongs_to_ = belongs_to;
  }
}

void Settings::check_applies(const SettingField& field, const Location& location) const {
  check(!field.applies_ || field.applies_(), location.code, located(location.source, location.line),
        ": ", field.path_, " belongs to ", field.belongs_to_, "; omit it or change that setting");
}

bool Settings::is_group(std::string_view path) const {
  return std::ranges::any_of(groups_, [&](const auto& group) { return group.first == path; });
}

SettingField* Settings::find(std::string_view path) const {
  for (const auto& field : fields_)
    if (field->path_ == path) return field.get();
  return nullptr;
}

std::string Settings::similar_keys(const std::string& path) const {
  std::vector<std::string> best;
  size_t smallest = too_many_edits(path.size());
  for (const auto& field : fields_) {
    size_t distance = edit_distance(path, field->path_);
    // The key may be right but its group wrong or missing: "layers" for "model.layers". If several
    // groups have the key, the message suggests all of them.
    if (last_key(path) == last_key(field->path_)) distance = std::min<size_t>(distance, 1);
    const bool as_near = distance == smallest && path == last_key(field->path_);
    if (distance >= smallest && !as_near) continue;
    if (distance < smallest) best.clear();
    smallest = distance;
    best.push_back("'" + field->path_ + "'");
  }
  return fmt::format("{}", fmt::join(best, " or "));
}

void Settings::fail_unknown(const std::string& path, const Location& location) const {
  const std::string at = located(location.source, location.line);
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    if (const SettingField* field = find(path.substr(0, dot)))
      fail(location.code, at, ": ", field->path_, ": expected ", field->expected_, ", found a map");
  for (const auto& [key, why] : foreign_)
    check(path != key && !path.starts_with(key + "."), location.code, at, ": ", key, ": ", why);
  const std::string suggestion = similar_keys(path);
  fail(
      location.code, at, ": unknown key '", printable(path), "'",
      suggestion.empty() ? "; `dump_config` lists all keys" : "; did you mean " + suggestion + "?");
}

void Settings::assign(SettingField& field, const std::vector<std::string>& items, bool list,
                      const Location& location) {
  const std::string at = located(location.source, location.line) + ": " + field.path_;
  check(!list || field.list_, location.code, at, ": expected ", field.expected_, ", found a list");
  for (const auto& load : load_copies_) load();
  const bool assigned = field.assign_(items);
  for (const auto& store : store_copies_) store();
  if (!assigned) {
    const std::string found = items.empty() ? "" : items[0];
    const std::string suggestion = nearest_name(found, field.names_);
    fail(location.code, at, ": expected ", field.expected_, ", found '", printable(found), "'",
         suggestion.empty() ? "" : "; did you mean '" + suggestion + "'?");
  }
  check(field.in_range(), location.code, at, ": ", field.print_(), " is out of range, ",
        field.range(), " is expected");
}

void Settings::read_text(std::string_view yaml, const std::string& source, ExitCode code) {
  check(yaml.size() <= kMaxBytes, code, source, " has ", yaml.size(), " bytes, at most ", kMaxBytes,
        " are allowed");
  const auto entries = read_yaml(yaml, source, code, kMaxDepth);
  for (const YamlEntry& entry : entries) {
    const Location location{source, entry.line, code};
    const bool empty = entry.kind == YamlEntry::Kind::null;
    if (empty && is_group(entry.path)) continue;
    SettingField* field = find(entry.path);
    if (field == nullptr && is_group(entry.path))
      fail(code, located(source, entry.line), ": ", entry.path, ": expected keys below it, found ",
           entry.kind == YamlEntry::Kind::list ? "a list" : "a value");
    if (field == nullptr) fail_unknown(entry.path, location);
    check(!empty, code, located(source, entry.line), ": ", entry.path, ": expected ",
          field->expected_, ", found nothing");
    assign(*field, entry.items, entry.kind == YamlEntry::Kind::list, location);
  }
  for (const YamlEntry& entry : entries)  // when all choices are set
    if (const SettingField* field = find(entry.path))
      check_applies(*field, {source, entry.line, code});
}

void Settings::read_file(const std::string& path, ExitCode code) {
  read_text(fovea::read_file(path, kMaxBytes, code), path, code);
}

void Settings::set(std::string_view assignment) {
  const Location location{"`set` " + printable(assignment), 0, ExitCode::usage};
  const size_t equals = assignment.find('=');
  check(equals != std::string_view::npos && equals > 0, ExitCode::usage, location.source,
        ": expected key=value");
  check(is_utf8(assignment), ExitCode::usage, location.source, ": not UTF-8");
  const std::string path(assignment.substr(0, equals)), value(assignment.substr(equals + 1));
  SettingField* field = find(path);
  if (field == nullptr) fail_unknown(path, location);
  check_applies(*field, location);
  if (!field->list_) return assign(*field, {value}, false, location);
  if (!value.starts_with('[')) return assign(*field, split_list(value), true, location);
  for (const YamlEntry& entry :
       read_yaml("list: " + value, location.source, ExitCode::usage, kMaxDepth))
    assign(*field, entry.items, true, location);
}

std::vector<std::pair<std::string, std::string>> Settings::values() const {
  for (const auto& load : load_copies_) load();
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& field : fields_)
    if (!field->applies_ || field->applies_()) all.emplace_back(field->path_, field->print_());
  return all;
}

std::string Settings::dump() const {
  for (const auto& load : load_copies_) load();
  std::string out, open;  // name of the group that is open in `out`, with a '.' at its end
  for (const auto& field : fields_) {
    if (field->applies_ && !field->applies_()) continue;
    const std::string& path = field->path_;
    while (!path.starts_with(open)) {
      open.pop_back();
      open.resize(open.rfind('.') + 1);
    }
    for (size_t dot; (dot = path.find('.', open.size())) != std::string::npos;) {
      const std::string group = path.substr(0, dot);
      const auto indent = std::string(2 * std::ranges::count(open, '.'), ' ');
      for (const auto& [name, help] : groups_)
        if (name == group) append_comment(out, indent, help);
      out += fmt::format("{}{}:\n", indent, group.substr(open.size()));
      open = group + ".";
    }
    const auto indent = std::string(2 * std::ranges::count(open, '.'), ' ');
    append_comment(out, indent, field->help_);
    out += fmt::format("{}{}: {}\n", indent, path.substr(open.size()), field->print_());
  }
  return out;
}

}  // namespace fovea

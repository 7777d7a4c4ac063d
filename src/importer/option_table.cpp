#include "importer/option_table.h"

#include <charconv>

#include "base/check.h"
#include "base/utf8.h"
#include "base/yaml.h"

namespace fovea {

constexpr int kDepth = 8;

OptionTable::OptionTable(std::string_view yaml, std::string path) : path_(std::move(path)) {
  for (YamlEntry& entry : read_yaml(yaml, path_, ExitCode::model, kDepth))
    values_[entry.path] = std::move(entry.items);
}

void OptionTable::reject(const std::string& key, const std::string& expected) const {
  const std::string found = has(key) ? text(key, "") : "missing";
  fail(ExitCode::model, path_, ": ", key, ": ", printable(found), ", expected ", expected,
       "; other models are not supported");
}

std::string OptionTable::text(const std::string& key, const std::string& otherwise) const {
  const auto found = values_.find(key);
  if (found == values_.end() || found->second.empty()) return otherwise;
  return found->second.front();
}

std::vector<std::string> OptionTable::list(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

namespace {

template <class Number>
bool parse(const std::string& text, Number& value) {
  const auto end = text.data() + text.size();
  return std::from_chars(text.data(), end, value).ptr == end && !text.empty();
}

}  // namespace

int64_t OptionTable::integer(const std::string& key, int64_t otherwise) const {
  int64_t value = otherwise;
  const std::string found = text(key, "");
  if (!found.empty() && !parse(found, value)) reject(key, "a whole number");
  return value;
}

double OptionTable::number(const std::string& key, double otherwise) const {
  double value = otherwise;
  const std::string found = text(key, "");
  if (!found.empty() && !parse(found, value)) reject(key, "a number");
  return value;
}

bool OptionTable::flag(const std::string& key, bool otherwise) const {
  const std::string found = text(key, "");
  if (found.empty()) return otherwise;
  if (found != "true" && found != "false") reject(key, "true or false");
  return found == "true";
}

void OptionTable::require(const std::string& key, const std::string& value) const {
  if (has(key) && text(key, "") != value) reject(key, value.empty() ? "no value" : value);
}

}  // namespace fovea

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// The options of a model of Marian or fairseq: names and values. Errors are ExitCode::model with
// the file, the option, the value found and the expected one.
class OptionTable {
 public:
  OptionTable() = default;
  explicit OptionTable(std::string path) : path_(std::move(path)) {}
  // Options as YAML: the keys of nested maps are joined by '.'.
  OptionTable(std::string_view yaml, std::string path);

  void set(const std::string& key, std::string value) { values_[key] = {std::move(value)}; }

  const std::string& path() const { return path_; }
  bool has(const std::string& key) const { return values_.contains(key); }
  std::string text(const std::string& key, const std::string& otherwise) const;
  int64_t integer(const std::string& key, int64_t otherwise) const;
  double number(const std::string& key, double otherwise) const;
  bool flag(const std::string& key, bool otherwise) const;
  std::vector<std::string> list(const std::string& key) const;

  // Requires that an option has this value, if it has one: Fovea has no other variant.
  void require(const std::string& key, const std::string& value) const;
  [[noreturn]] void reject(const std::string& key, const std::string& expected) const;

 private:
  std::string path_;
  std::map<std::string, std::vector<std::string>> values_;
};

}  // namespace fovea

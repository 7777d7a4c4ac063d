#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// The settings file of another program: a JSON object. A key that is missing or null has no value.
// Functions fail with ExitCode::model and the file, the key, the value found and the expected one.
class ForeignSettings {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  ForeignSettings();  // an object without keys
  static ForeignSettings load(const std::string& path);
  static ForeignSettings load_if_exists(const std::string& path);
  static ForeignSettings parse(std::string_view json, const std::string& path);

  const std::string& path() const { return path_; }
  bool has(const char* key) const;
  std::vector<std::string> keys() const;

  // The value of a key, or `otherwise`. An overload without `otherwise` requires the key.
  int64_t integer(const char* key, int64_t otherwise) const;
  int64_t integer(const char* key) const;
  double number(const char* key, double otherwise) const;
  bool flag(const char* key, bool otherwise) const;
  std::string text(const char* key, const std::string& otherwise) const;
  // The ids of a list of numbers, or of one number; empty without the key.
  std::vector<int64_t> integers(const char* key) const;
  ForeignSettings object(const char* key) const;  // empty without the key

  // A positive size of at most 2^24, as of a layer or a vocabulary.
  int64_t size(const char* key) const;

  // Requires that a setting which Fovea cannot change has the value that Fovea implements. A key
  // without a value passes.
  void require_number(const char* key, double value) const;
  void require_flag(const char* key, bool value) const;
  // Requires that a setting which Fovea does not support has no value, or an empty one.
  void require_empty(const char* key) const;

  const nlohmann::json& json() const { return *json_; }
  [[noreturn]] void reject(const std::string& key, const std::string& expected) const;

 private:
  const nlohmann::json* find(const char* key) const;
  std::string path_;
  std::shared_ptr<const nlohmann::json> json_;
};

}  // namespace fovea

#include "importer/foreign_settings.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/files.h"
#include "base/utf8.h"

namespace fovea {

using Json = nlohmann::json;

ForeignSettings::ForeignSettings() : json_(std::make_shared<const Json>(Json::object())) {}

ForeignSettings ForeignSettings::parse(std::string_view json, const std::string& path) {
  ForeignSettings settings;
  settings.path_ = path;
  Json parsed = Json::parse(json, nullptr, false);
  check(!parsed.is_discarded(), ExitCode::model, path, ": this file is not valid JSON; copy it ",
        "again from the original model");
  check(parsed.is_object(), ExitCode::model, path, ": found ", parsed.type_name(),
        ", expected an object with settings; copy the file again from the original model");
  settings.json_ = std::make_shared<const Json>(std::move(parsed));
  return settings;
}

ForeignSettings ForeignSettings::load(const std::string& path) {
  return parse(read_file(path, kMaxBytes, ExitCode::model), path);
}

ForeignSettings ForeignSettings::load_if_exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ? load(path) : ForeignSettings();
}

const Json* ForeignSettings::find(const char* key) const {
  const auto found = json_->find(key);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

bool ForeignSettings::has(const char* key) const { return find(key) != nullptr; }

std::vector<std::string> ForeignSettings::keys() const {
  std::vector<std::string> names;
  for (const auto& item : json_->items()) names.push_back(item.key());
  return names;
}

void ForeignSettings::reject(const std::string& key, const std::string& expected) const {
  const auto found = json_->find(key);
  const std::string value =
      found == json_->end()
          ? "missing"
          : printable(found->dump(-1, ' ', false, Json::error_handler_t::replace), 120);
  fail(ExitCode::model, path_, ": ", key, ": ", value, ", ", expected);
}

int64_t ForeignSettings::integer(const char* key, int64_t otherwise) const {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<uint64_t>() <= INT64_MAX);
  if (!fits) reject(key, "expected a whole number");
  return value->get<int64_t>();
}

int64_t ForeignSettings::integer(const char* key) const {
  if (!has(key)) reject(key, "expected a whole number; use the file of the original model");
  return integer(key, 0);
}

int64_t ForeignSettings::size(const char* key) const {
  const int64_t value = integer(key);
  if (value < 1 || value > (int64_t{1} << 24)) reject(key, "expected 1 to 16777216");
  return value;
}

double ForeignSettings::number(const char* key, double otherwise) const {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) reject(key, "expected a number");
  return value->get<double>();
}

bool ForeignSettings::flag(const char* key, bool otherwise) const {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) reject(key, "expected true or false");
  return value->get<bool>();
}

std::string ForeignSettings::text(const char* key, const std::string& otherwise) const {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) reject(key, "expected a string");
  return value->get<std::string>();
}

std::vector<int64_t> ForeignSettings::integers(const char* key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (value->is_number_integer()) return {integer(key)};
  std::vector<int64_t> result;
  if (!value->is_array()) reject(key, "expected a list of whole numbers");
  for (const Json& item : *value) {
    if (!item.is_number_integer()) reject(key, "expected a list of whole numbers");
    result.push_back(item.get<int64_t>());
  }
  return result;
}

ForeignSettings ForeignSettings::object(const char* key) const {
  ForeignSettings result;
  result.path_ = path_ + ": " + key;
  const Json* value = find(key);
  if (value == nullptr) return result;
  if (!value->is_object()) reject(key, "expected an object");
  result.json_ = std::make_shared<const Json>(*value);
  return result;
}

void ForeignSettings::require_number(const char* key, double value) const {
  if (number(key, value) != value)
    reject(key, fmt::format("only {} is supported; change the file to import the model without "
                            "this setting, its results will differ from the original",
                            value));
}

void ForeignSettings::require_flag(const char* key, bool value) const {
  if (flag(key, value) != value)
    reject(key, fmt::format("only {} is supported; convert another model", value));
}

void ForeignSettings::require_empty(const char* key) const {
  const Json* value = find(key);
  if (value != nullptr && !value->empty())
    reject(key,
           "this setting is not supported; remove it from the file to import the model "
           "without it, its results will differ from the original");
}

}  // namespace fovea

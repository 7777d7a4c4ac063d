#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace fovea {

// A receiver of the events of a JSON text, which checks them before anything is stored. This base
// class refuses every event. A derived class overrides the events that its format allows. Every
// error is ExitCode::model with the path and location().
class StrictJson : public nlohmann::json_sax<nlohmann::json> {
 public:
  // `path` must outlive the object. `offset` is the position of the JSON text in the file.
  StrictJson(const std::string& path, std::string what, uint64_t offset = 0)
      : path_(path), what_(std::move(what)), offset_(offset) {}

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("true or false"); }
  bool number_integer(number_integer_t) override { return refuse("a negative number"); }
  bool number_unsigned(number_unsigned_t) override { return refuse("a number"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("a fraction"); }
  bool string(string_t&) override { return refuse("a string"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool start_object(size_t) override { return refuse("an object"); }
  bool key(string_t&) override { return refuse("a key"); }
  bool end_object() override { return refuse("the end of an object"); }
  bool start_array(size_t) override { return refuse("an array"); }
  bool end_array() override { return refuse("the end of an array"); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::json::exception& e) override;

  // Parses the text and calls the event functions. Also refuses a NUL and a byte order mark.
  void read(std::string_view json);

 protected:
  virtual std::string location() const { return what_; }
  [[noreturn]] void fault(const std::string& problem) const {
    fail(ExitCode::model, path_, ": ", location(), ": ", problem);
  }
  bool refuse(const char* found) const { fault(fmt::format("found {}, not expected here", found)); }

  const std::string& path_;
  std::string what_;
  uint64_t offset_;
};

}  // namespace fovea

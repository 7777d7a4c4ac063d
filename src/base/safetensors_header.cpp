#include "base/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/utf8.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

// Refuses every event. A derived class overrides the events that its format allows.
class StrictEvents : public nlohmann::json_sax<Json> {
 public:
  StrictEvents(const std::string& path, std::string what, uint64_t offset)
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

  bool parse_error(size_t position, const std::string&, const Json::exception& e) override {
    const std::string_view text = e.what();
    const size_t colon = text.find(": ", text.find("column"));
    fail(ExitCode::model, path_, ": byte ", offset_ + position - std::min<size_t>(position, 1),
         ": ", what_, " is not valid JSON: ",
         printable(text.substr(colon == std::string_view::npos ? 0 : colon + 2), 120));
  }

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

class HeaderEvents : public StrictEvents {
 public:
  HeaderEvents(const std::string& path, SafetensorsHeader& header)
      : StrictEvents(path, "the header", 8), header_(header) {}

  bool start_object(size_t) override {
    if (in_ == Location::nothing && !ended_) return enter(Location::root);
    if (in_ != Location::root || !key_) return refuse("an object");
    if (*key_ == "__metadata__") return enter(Location::metadata);
    type_.reset();
    shape_.reset();
    offsets_.reset();
    return enter(Location::tensor);
  }

  bool key(string_t& text) override {
    if (in_ == Location::root) {
      if (!names_.insert(text).second) fault("key '" + printable(text) + "' is given twice");
      if (text != "__metadata__") {
        check_tensor_name(text, ExitCode::model, path_);
        if (header_.tensors.size() >= SafetensorsFile::kMaxTensors)
          fault(fmt::format("more than {} tensors", SafetensorsFile::kMaxTensors));
      }
      key_ = text;
    } else {
      field_ = text;
      if (in_ == Location::metadata && header_.metadata.contains(text))
        fault("key '" + printable(text) + "' is given twice");
    }
    return true;
  }

  bool string(string_t& text) override {
    if (in_ == Location::metadata) {
      header_.metadata.emplace(field_, text);
      return true;
    }
    if (in_ != Location::tensor || field_ != "dtype") return refuse("a string");
    if (type_) fault("key 'dtype' is given twice");
    type_ = stored_type(text);
    if (!type_) fault("unknown dtype '" + printable(text) + "'");
    return true;
  }

  bool start_array(size_t) override {
    if (in_ != Location::tensor) return refuse("an array");
    std::optional<std::vector<uint64_t>>& list = field_ == "shape" ? shape_ : offsets_;
    if (field_ != "shape" && field_ != "data_offsets") return refuse("an array");
    if (list) fault("key '" + field_ + "' is given twice");
    list.emplace();
    return enter(field_ == "shape" ? Location::shape : Location::offsets);
  }

  bool number_unsigned(number_unsigned_t n) override {
    if (in_ == Location::shape) {
      if (shape_->size() >= SafetensorsFile::kMaxRank)
        fault(fmt::format("a rank beyond {}", SafetensorsFile::kMaxRank));
      if (n > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        fault(fmt::format("dimension {} is too large", n));
      shape_->push_back(n);
    } else if (in_ == Location::offsets) {
      if (offsets_->size() >= 2) fault("more than two data_offsets");
      offsets_->push_back(n);
    } else {
      return refuse("a number");
    }
    return true;
  }

  bool end_array() override { return enter(Location::tensor); }

  bool end_object() override {
    if (in_ == Location::root) {
      ended_ = true;
      return enter(Location::nothing);
    }
    if (in_ == Location::tensor) finish_tensor();
    return enter(Location::root);
  }

 protected:
  std::string location() const override {
    if (in_ == Location::metadata) return "__metadata__ '" + printable(field_) + "'";
    if (in_ == Location::nothing || !key_) return what_;
    return "tensor '" + printable(*key_) + "'";
  }

 private:
  enum class Location { nothing, root, metadata, tensor, shape, offsets };

  bool enter(Location location) {
    in_ = location;
    field_ = location == Location::metadata || location == Location::root ? "" : field_;
    return true;
  }

  void finish_tensor() {
    if (!type_) fault("no dtype");
    if (!shape_) fault("no shape");
    if (!offsets_ || offsets_->size() != 2) fault("no data_offsets [begin, end]");
    header_.tensors.push_back(
        {*key_, *type_, {shape_->begin(), shape_->end()}, (*offsets_)[0], (*offsets_)[1]});
  }

  SafetensorsHeader& header_;
  Location in_ = Location::nothing;
  bool ended_ = false;
  std::set<std::string> names_;
  std::optional<std::string> key_;  // the current tensor, or the last one
  std::string field_;
  std::optional<StoredType> type_;
  std::optional<std::vector<uint64_t>> shape_, offsets_;
};

class ChecksumEvents : public StrictEvents {
 public:
  ChecksumEvents(const std::string& path, std::map<std::string, uint32_t, std::less<>>& table)
      : StrictEvents(path, "metadata 'crc32c'", 0), table_(table) {}

  bool start_object(size_t) override { return ++depth_ == 1 || refuse("an object"); }
  bool end_object() override { return true; }
  bool key(string_t& text) override {
    if (table_.contains(text)) fault("'" + printable(text) + "' is given twice");
    name_ = text;
    return true;
  }
  bool string(string_t& text) override {
    uint32_t sum = 0;
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, sum, 16);
    if (depth_ == 0 || text.size() != 8 || result.ec != std::errc() || result.ptr != end)
      fault("'" + printable(text) + "' is not a checksum; eight hex digits are expected");
    table_.emplace(name_, sum);
    return true;
  }

 private:
  std::map<std::string, uint32_t, std::less<>>& table_;
  std::string name_;
  int depth_ = 0;
};

void parse_events(std::string_view json, StrictEvents& events, const std::string& path,
                  uint64_t offset) {
  // nlohmann treats a NUL as the end of the text and skips a byte order mark.
  const size_t nul = json.find('\0');
  check(nul == std::string_view::npos, ExitCode::model, path, ": byte ", offset + nul,
        ": a NUL byte in the JSON");
  check(!json.starts_with("\xEF\xBB\xBF"), ExitCode::model, path, ": byte ", offset,
        ": a byte order mark before the JSON");
  Json::sax_parse(json, &events);
}

std::string quoted(const std::string& text) { return Json(text).dump(); }

std::string json_object(const std::map<std::string, std::string>& map) {
  std::string out;
  for (const auto& [key, value] : map)
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", quoted(key), quoted(value));
  return "{" + out + "}";
}

}  // namespace

void check_tensor_name(const std::string& name, ExitCode code, const std::string& path) {
  check(!name.empty(), code, path, ": a tensor's name is empty");
  check(name.size() <= SafetensorsFile::kMaxName, code, path, ": tensor '", printable(name),
        "': a name of ", name.size(), " bytes, at most ", SafetensorsFile::kMaxName,
        " are allowed");
  check(name.find('\0') == std::string::npos, code, path, ": tensor '", printable(name),
        "': a NUL byte in its name");
  check(is_utf8(name), code, path, ": tensor '", printable(name), "': its name is not UTF-8");
}

SafetensorsHeader parse_safetensors_header(std::string_view json, const std::string& path) {
  SafetensorsHeader header;
  HeaderEvents events(path, header);
  parse_events(json, events, path, 8);
  return header;
}

std::string format_safetensors_header(const std::vector<TensorInfo>& tensors,
                                      const std::map<std::string, std::string>& metadata) {
  std::string out;
  if (!metadata.empty()) out = "\"__metadata__\":" + json_object(metadata);
  for (const TensorInfo& t : tensors)
    out += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                       out.empty() ? "" : ",", quoted(t.name), stored_name(t.dtype),
                       fmt::join(t.shape, ","), t.begin, t.end);
  return "{" + out + "}";
}

std::map<std::string, uint32_t, std::less<>> parse_checksum_table(std::string_view json,
                                                                  const std::string& path) {
  std::map<std::string, uint32_t, std::less<>> table;
  ChecksumEvents events(path, table);
  parse_events(json, events, path, 0);
  return table;
}

std::string format_checksum_table(const std::map<std::string, std::string>& table) {
  return json_object(table);
}

}  // namespace fovea

#include "base/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <limits>
#include <optional>
#include <set>

#include "base/strict_json.h"
#include "base/utf8.h"

namespace fovea {
namespace {

class HeaderEvents : public StrictJson {
 public:
  HeaderEvents(const std::string& path, SafetensorsHeader& header)
      : StrictJson(path, "the header", 8), header_(header) {}

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
  std::optional<std::string> key_;  // name of the tensor that is read or was read last
  std::string field_;
  std::optional<StoredType> type_;
  std::optional<std::vector<uint64_t>> shape_, offsets_;
};

class ChecksumEvents : public StrictJson {
 public:
  ChecksumEvents(const std::string& path, std::map<std::string, uint32_t, std::less<>>& table)
      : StrictJson(path, "metadata 'crc32c'"), table_(table) {}

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

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

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
  events.read(json);
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
  events.read(json);
  return table;
}

std::string format_checksum_table(const std::map<std::string, std::string>& table) {
  return json_object(table);
}

}  // namespace fovea

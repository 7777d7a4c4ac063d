#include "serve/request_parameters.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/ascii.h"
#include "base/utf8.h"
#include "http/http_error.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 32;
constexpr int64_t kMaxValues = 100'000;  // limit of JSON values: each allocates memory

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  throw HttpError(400, fmt::format("Invalid request: {} {}", name, why));
}

void check_utf8(std::string_view name, std::string_view text) {
  const size_t at = find_invalid_utf8(text);
  if (at != std::string_view::npos) refuse(name, fmt::format("is not UTF-8 at byte {}", at));
}

// Converts CR LF to LF: browsers send all line ends of a form as CR LF.
std::string with_line_feeds(std::string text) {
  size_t to = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') text[to++] = text[i];
  text.resize(to);
  return text;
}

double parsed_number(std::string_view name, const Json& value, std::string_view what) {
  if (value.is_number()) return value.get<double>();
  const std::string wrong = fmt::format("parameter is not {}", what);
  if (!value.is_string()) refuse(name, wrong);
  const std::string& text = value.get_ref<const std::string&>();
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) refuse(name, wrong);
  return number;
}

// A SAX handler that counts depth and values of JSON and stops beyond the limits. A callback of
// Json::parse would be slower: for each object it visits all values beside it.
class LimitCheck : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  bool number_float(number_float_t, const string_t&) override { return count(); }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return count(); }
  bool key(string_t&) override { return count(); }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  bool count() { return ++values_ <= kMaxValues; }
  bool open() { return ++depth_ <= kMaxDepth && count(); }
  bool close() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  int64_t values_ = 0;
};

double in_range(std::string_view name, double number, const RequestParameters::Range& range) {
  if (number > range.high) refuse(name, fmt::format("parameter must be <= {}", range.high));
  if (!(number >= range.low)) refuse(name, fmt::format("parameter must be >= {}", range.low));
  return number;
}

}  // namespace

std::optional<Json> parse_json(std::string_view text) {
  LimitCheck limits;
  if (!Json::sax_parse(text, &limits)) return std::nullopt;
  try {
    return Json::parse(text);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

RequestParameters::RequestParameters(const HttpRequest& request) {
  const std::string type = lower_ascii(request.header("content-type"));
  if (request.method == "POST" && type.starts_with("application/json")) {
    auto object = parse_json(request.body);
    if (!object || !object->is_object()) throw HttpError(400, "Invalid JSON format");
    object_ = std::move(*object);
    return;
  }
  is_form_ = true;
  std::vector<FormField> fields = parse_urlencoded(request.query);
  const bool multipart = type.starts_with("multipart/form-data");
  std::vector<FormField> body = multipart
                                    ? parse_multipart(request.body, request.header("content-type"))
                                : request.method == "POST" ? parse_urlencoded(request.body)
                                                           : std::vector<FormField>{};
  fields.insert(fields.end(), std::move_iterator(body.begin()), std::move_iterator(body.end()));
  for (FormField& field : fields) {
    if (field.is_file) {
      files_.push_back(std::move(field));
      continue;
    }
    check_utf8(is_utf8(field.name) ? field.name : "a field's name", field.value);
    if (!is_utf8(field.name)) refuse("a field's name", "is not UTF-8");
    Json& known = object_[field.name];
    std::string text = with_line_feeds(std::move(field.value));
    if (known.is_null())
      known = std::move(text);
    else if (known.is_string())
      known = Json::array({known, std::move(text)});
    else
      known.push_back(std::move(text));
  }
}

const Json* RequestParameters::value(std::string_view name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool RequestParameters::has(std::string_view name) const { return value(name) != nullptr; }

std::optional<std::string> RequestParameters::text(std::string_view name) const {
  const Json* found = value(name);
  if (found && found->is_array() && is_form_) found = &found->front();
  if (!found) return std::nullopt;
  if (!found->is_string()) refuse(name, "parameter is not a string");
  const auto& text = found->get_ref<const std::string&>();
  if (text.empty()) return std::nullopt;
  return text;
}

std::optional<RequestParameters::Texts> RequestParameters::texts(std::string_view name) const {
  const Json* found = value(name);
  if (!found || (found->is_string() && found->get_ref<const std::string&>().empty()) ||
      (found->is_array() && found->empty()))
    return std::nullopt;
  if (found->is_string()) return Texts{{found->get<std::string>()}, false};
  if (!found->is_array()) refuse(name, "parameter is not a string or a list of strings");
  Texts list{{}, true};
  for (const Json& item : *found) {
    if (!item.is_string()) refuse(name, "parameter is not a list of strings");
    list.values.push_back(item.get<std::string>());
  }
  return list;
}

Json RequestParameters::list(std::string_view name) const {
  const Json* found = value(name);
  if (!found || *found == "") return Json::array();
  if (found->is_array()) return *found;
  auto parsed =
      found->is_string() ? parse_json(found->get_ref<const std::string&>()) : std::nullopt;
  if (!parsed || !parsed->is_array()) refuse(name, "parameter is not a list");
  return *parsed;
}

bool RequestParameters::flag(std::string_view name) const {
  const Json* found = value(name);
  if (!found) return false;
  if (found->is_boolean()) return found->get<bool>();
  if (found->is_string()) {
    const std::string text = lower_ascii(found->get_ref<const std::string&>());
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0" || text.empty()) return false;
  }
  refuse(name, "parameter is not true or false");
}

std::optional<int64_t> RequestParameters::integer(std::string_view name, Range range) const {
  const Json* found = value(name);
  if (!found) return std::nullopt;
  const double number = parsed_number(name, *found, "a number");
  if (number != std::floor(number)) refuse(name, "parameter is not a number");
  return static_cast<int64_t>(in_range(name, number, range));
}

std::optional<double> RequestParameters::number(std::string_view name, Range range) const {
  const Json* found = value(name);
  if (!found) return std::nullopt;
  return in_range(name, parsed_number(name, *found, "a number"), range);
}

const FormField* RequestParameters::file(std::string_view name) const {
  for (const FormField& file : files_)
    if (file.name == name) return &file;
  return nullptr;
}

}  // namespace fovea

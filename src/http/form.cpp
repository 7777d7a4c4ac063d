#include "http/form.h"

#include <charconv>
#include <cstdint>
#include <optional>

#include "base/ascii.h"
#include "http/http_error.h"

namespace fovea {
namespace {

constexpr size_t kMaxFields = 1000;

[[noreturn]] void refuse_form(const char* why) {
  throw HttpError(400, std::string("Invalid request: damaged form: ") + why);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Returns the value of a parameter of a header: name="value" or name=value.
std::optional<std::string> parameter(std::string_view header, std::string_view name) {
  size_t at = header.find(';');
  while (at != std::string_view::npos) {
    size_t end = at + 1;
    for (bool quoted = false; end < header.size() && (quoted || header[end] != ';'); ++end) {
      if (header[end] == '\\' && quoted)
        ++end;
      else if (header[end] == '"')
        quoted = !quoted;
    }
    end = std::min(end, header.size());
    const std::string_view item = trimmed(header.substr(at + 1, end - at - 1));
    const size_t equals = item.find('=');
    if (equals != std::string_view::npos && lower_ascii(item.substr(0, equals)) == name) {
      std::string_view value = trimmed(item.substr(equals + 1));
      if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
        std::string plain;
        for (size_t i = 1; i + 1 < value.size(); ++i) {
          const bool escape = value[i] == '\\' && i + 2 < value.size();
          plain += escape && (value[i + 1] == '"' || value[i + 1] == '\\') ? value[++i] : value[i];
        }
        return plain;
      }
      return std::string(value);
    }
    at = end < header.size() ? end : std::string_view::npos;
  }
  return std::nullopt;
}

FormField parse_part(std::string_view part) {
  const size_t split = part.find("\r\n\r\n");
  const bool bare = part.starts_with("\r\n");  // no headers at all
  if (split == std::string_view::npos || bare) refuse_form("a part without headers");
  FormField field;
  field.value = part.substr(split + 4);
  std::string_view headers = part.substr(0, split);
  bool named = false;
  while (!headers.empty()) {
    const size_t end = std::min(headers.find("\r\n"), headers.size());
    const std::string_view line = headers.substr(0, end);
    headers.remove_prefix(std::min(end + 2, headers.size()));
    if (!lower_ascii(line).starts_with("content-disposition:")) continue;
    if (const auto name = parameter(line, "name")) field.name = *name, named = true;
    if (const auto file = parameter(line, "filename"))
      field.file_name = *file, field.is_file = true;
  }
  if (!named) refuse_form("a part without a name");
  return field;
}

}  // namespace

std::string percent_decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const char* const digits = text.data() + i + 1;
    uint8_t byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      result += text[i] == '+' ? ' ' : text[i];
    }
  }
  return result;
}

std::vector<FormField> parse_urlencoded(std::string_view text) {
  std::vector<FormField> fields;
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (item.empty()) continue;
    if (fields.size() == kMaxFields) refuse_form("too many fields");
    const size_t equals = std::min(item.find('='), item.size());
    const std::string_view value = item.substr(std::min(equals + 1, item.size()));
    fields.push_back({percent_decoded(item.substr(0, equals)), percent_decoded(value)});
  }
  return fields;
}

std::vector<FormField> parse_multipart(std::string_view body, std::string_view type) {
  const auto boundary = parameter(type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > 70) refuse_form("no boundary");
  const std::string mark = "\r\n--" + *boundary;
  std::vector<FormField> fields;
  const std::string_view first = std::string_view(mark).substr(2);
  size_t at = body.starts_with(first) ? first.size() : body.find(mark);
  if (at == std::string_view::npos) refuse_form("the boundary does not occur");
  if (!body.starts_with(first)) at += mark.size();
  for (;;) {
    if (body.substr(at).starts_with("--")) return fields;
    if (!body.substr(at).starts_with("\r\n")) refuse_form("no line end after the boundary");
    const size_t end = body.find(mark, at);
    if (end == std::string_view::npos) refuse_form("the last boundary is missing");
    if (fields.size() == kMaxFields) refuse_form("too many fields");
    const size_t begin = at + 2;
    fields.push_back(parse_part(end >= begin ? body.substr(begin, end - begin) : ""));
    at = end + mark.size();
  }
}

}  // namespace fovea

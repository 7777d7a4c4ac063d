#include "serve/http.h"

#include <fmt/format.h>

#include <algorithm>

namespace fovea {
namespace {

constexpr std::pair<int, const char*> kReasons[] = {
    {200, "OK"},
    {204, "No Content"},
    {304, "Not Modified"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {413, "Payload Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {456, "Quota Exceeded"},
    {500, "Internal Server Error"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

// A value can never begin a header of its own.
std::string without_breaks(std::string_view value) {
  std::string line(value);
  std::erase_if(line, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
  return line;
}

}  // namespace

std::string_view Request::header(std::string_view name) const {
  for (const auto& [known, value] : headers)
    if (known == name) return value;
  return {};
}

std::string Request::client(int64_t proxies) const {
  constexpr size_t kLongestAddress = 64;
  std::vector<std::string> addresses;
  for (const auto& [name, value] : headers) {
    if (name != "x-forwarded-for") continue;
    for (size_t at = 0, end = 0; end < value.size() && at <= value.size(); at = end + 1) {
      end = std::min(value.find(',', at), value.size());
      std::string one = value.substr(at, end - at);
      std::erase_if(one, [](char c) { return c == ' ' || c == '\t'; });
      addresses.push_back(one.substr(0, kLongestAddress));
    }
  }
  const bool named = proxies > 0 && std::ssize(addresses) >= proxies;
  return named ? addresses[addresses.size() - static_cast<size_t>(proxies)] : address;
}

const char* reason(int status) {
  for (const auto& [known, text] : kReasons)
    if (known == status) return text;
  return "";
}

std::string head_of(const Reply& reply) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nServer: fovea\r\n", reply.status, reason(reply.status));
  if (!reply.type.empty()) head += "Content-Type: " + without_breaks(reply.type) + "\r\n";
  for (const auto& [name, value] : reply.headers)
    head += name + ": " + without_breaks(value) + "\r\n";
  return head;
}

std::string bytes_of(const Reply& reply, Manner manner) {
  std::string bytes = head_of(reply);
  if (reply.status != 304)  // which would have to name the length of the body it leaves out
    bytes += fmt::format("Content-Length: {}\r\n", reply.body.size());
  bytes += manner.keep_alive ? "\r\n" : "Connection: close\r\n\r\n";
  return manner.head_only ? bytes : bytes + reply.body;
}

std::string chunk(std::string_view part) {
  return fmt::format("{:x}\r\n{}\r\n", part.size(), part);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return result;
}

}  // namespace fovea

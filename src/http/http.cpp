#include "http/http.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ascii.h"

namespace fovea {
namespace {

constexpr const char* kForOtherOrigins =
    "Access-Control-Allow-Origin: *\r\n"
    "Access-Control-Allow-Headers: Authorization, Content-Type, X-Request-Id\r\n"
    "Access-Control-Expose-Headers: Authorization, Retry-After, X-Request-Id\r\n"
    "Access-Control-Allow-Methods: GET, POST\r\n"
    "Access-Control-Allow-Credentials: true\r\n"
    "Access-Control-Max-Age: 1728000\r\n";

// Removes line breaks, so that a value cannot begin another header.
std::string without_breaks(std::string_view value) {
  std::string line(value);
  std::erase_if(line, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
  return line;
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [known, value] : headers)
    if (known == name) return value;
  return {};
}

size_t HttpRequest::count(std::string_view name) const {
  return static_cast<size_t>(
      std::ranges::count(headers, name, [](const auto& header) { return header.first; }));
}

void HttpRequest::set_target(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (lower_ascii(target.substr(0, scheme.size())) == scheme) {
      target.remove_prefix(scheme.size());
      target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
    }
  const size_t question = std::min(target.find('?'), target.size());
  path = question > 0 ? target.substr(0, question) : "/";
  query = target.substr(std::min(question + 1, target.size()));
}

ProtocolError find_protocol_error(const HttpRequest& head, unsigned version) {
  const auto differs = [&](const char* name, const char* known) {
    return head.count(name) > 0 && lower_ascii(head.header(name)) != known;
  };
  if (version != 10 && version != 11)
    return {505, "the HTTP version is not supported; use HTTP/1.1"};
  if (version == 11 && head.count("host") != 1)
    return {400, "the request must have exactly one Host header"};
  if (head.count("content-length") > 1)
    return {400, "the request has several Content-Length headers"};
  if (head.count("transfer-encoding") > 0 && (head.count("content-length") > 0 || version == 10 ||
                                              differs("transfer-encoding", "chunked")))
    return {400, "this Transfer-Encoding is not supported; use chunked"};
  if (differs("content-encoding", "identity"))
    return {415, "compressed requests are not supported"};
  if (differs("expect", "100-continue"))
    return {417, "this Expect header is not supported; use 100-continue"};
  return {};
}

std::string host_name(std::string_view host) {
  const size_t end = host.starts_with('[') ? host.find(']') : std::string_view::npos;
  return lower_ascii(end == host.npos ? host.substr(0, host.find(':')) : host.substr(1, end - 1));
}

std::string HttpRequest::client(int64_t proxies) const {
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

std::string head_of(const HttpReply& reply) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\nServer: fovea\r\n", reply.status, reason(reply.status));
  if (!reply.type.empty()) head += "Content-Type: " + without_breaks(reply.type) + "\r\n";
  for (const auto& [name, value] : reply.headers)
    head += name + ": " + without_breaks(value) + "\r\n";
  return reply.cors == CorsPolicy::any_origin ? head + kForOtherOrigins : head;
}

std::string whole_head_of(const HttpReply& reply, ConnectionReuse after) {
  std::string head = head_of(reply);
  // A reply with status 204 must not have a Content-Length. With status 304 it would have to be the
  // length of the omitted body.
  if (reply.status != 204 && reply.status != 304)
    head += fmt::format("Content-Length: {}\r\n", reply.body.size());
  return head + (after == ConnectionReuse::keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
}

}  // namespace fovea

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

using Headers = std::vector<std::pair<std::string, std::string>>;

// A complete request.
struct HttpRequest {
  std::string method, path, query;  // as received; path and query are percent-encoded
  Headers headers = {};             // names in lower case
  std::string body = {}, address = {};

  std::string_view header(std::string_view name) const;  // "" if absent
  size_t count(std::string_view name) const;             // number of headers with this name
  // Sets path and query from a request target, which may also be an absolute URL:
  // "http://host/path".
  void set_target(std::string_view target);
  // Returns the address of the client behind this number of proxies. Each proxy appends the address
  // of its client to X-Forwarded-For. Earlier entries of that header are not trustworthy.
  std::string client(int64_t proxies) const;
};

// The error of a malformed or unsupported request. Status 0: no error, or no answer is sent.
struct ProtocolError {
  int status = 0;
  const char* text = "";
};
// Checks a parsed header. `version` is 10 for HTTP/1.0, 11 for HTTP/1.1.
ProtocolError find_protocol_error(const HttpRequest& head, unsigned version);

// Returns the name or address in a Host header, in lower case, without port and brackets.
std::string host_name(std::string_view host);

// The web pages that may read a reply (CORS).
enum class CorsPolicy { any_origin, same_origin };

struct HttpReply {
  int status = 200;
  std::string body = {};
  std::string type = "application/json";
  Headers headers = {};
  CorsPolicy cors = CorsPolicy::any_origin;
};

std::string_view reason(int status);  // "Not Found"
// Returns the status line and the headers of a reply, without the empty line.
std::string head_of(const HttpReply& reply);
// Returns head_of() with a Content-Length and the empty line, and with "Connection: close" if the
// connection is not reused.
enum class ConnectionReuse { keep_alive, close };
std::string whole_head_of(const HttpReply& reply, ConnectionReuse after);

// An exchange of one request and its answer. Thread-safe. If it is destroyed without an answer, it
// answers 500, so that the client does not wait forever; if the client has left, it closes the
// connection.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual void answer(HttpReply reply) = 0;  // call it at most once

  // These functions send an answer in parts: the head, any number of parts, the end.
  virtual void begin(HttpReply head) = 0;
  virtual void send(std::string part) = 0;
  virtual void end() = 0;

  virtual bool gone() const = 0;  // whether the client has left
};

// A function that handles a request. Any thread of a server may call it, also the I/O thread, so it
// must not block.
using HttpHandler =
    std::function<void(HttpRequest request, std::shared_ptr<HttpExchange> exchange)>;

}  // namespace fovea

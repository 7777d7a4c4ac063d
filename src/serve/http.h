#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

using Headers = std::vector<std::pair<std::string, std::string>>;

// What a client asks, read to its end.
struct Request {
  std::string method, path, query;  // as sent, path and query still percent-encoded
  Headers headers = {};             // names in lower case
  std::string body = {}, address = {};

  std::string_view header(std::string_view name) const;  // "" where there is none
  size_t count(std::string_view name) const;             // headers of that name
  // Path and query of a request line, which may also name a whole address: "http://host/path".
  void set_target(std::string_view target);
  // Who asked, where so many proxies stand before the server, each of which names at the end of
  // X-Forwarded-For whom it was asked by. What stands before that is anybody's claim.
  std::string client(int64_t proxies) const;
};

// What a client is told that cannot be served; status 0: nothing.
struct Complaint {
  int status = 0;
  const char* text = "";
};
// What is wrong with a header of this version, 10 or 11, that could be read.
Complaint complaint_of(const Request& head, unsigned version);

// The name or address in a Host header, in lower case, without port and brackets.
std::string host_name(std::string_view host);

// Which web pages may read a reply: CORS.
enum class Readers { any_origin, same_origin };

struct Reply {
  int status = 200;
  std::string body = {};
  std::string type = "application/json";
  Headers headers = {};
  Readers readers = Readers::any_origin;
};

const char* reason(int status);  // "Not Found"
// Status line and headers, without the empty line.
std::string head_of(const Reply& reply);
// The same with the length of the body, whether the connection stays open, and the empty line.
enum class Connected { keep_alive, close };
std::string whole_head_of(const Reply& reply, Connected after);
std::string lower(std::string_view text);  // ASCII

// One request being answered, from any thread. An exchange that is let go without an answer
// answers 500, so that no client waits for ever; one whose client has left closes its connection.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void answer(Reply reply) = 0;  // once

  // Or an answer in parts, as they come: its head, any number of parts, the end.
  virtual void begin(Reply head) = 0;
  virtual void send(std::string part) = 0;
  virtual void end() = 0;

  virtual bool gone() const = 0;  // the client left
};

// Called by any thread of a server, also by that of all connections: it must not wait.
using Handler = std::function<void(Request request, std::shared_ptr<Exchange> exchange)>;

}  // namespace fovea

#include "http/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/http/status.hpp>
#include <cerrno>
#include <utility>

#include "base/ascii.h"
#include "base/log.h"
#include "http/client_address.h"

namespace fovea {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr size_t kMaxDiscarded = 1 << 20;
// Maximum bytes of one read or write. Between two reads or writes, the I/O thread serves other
// connections. kRead is for headers and chunked bodies, which the parser reads; kReadUnparsed is
// for other bodies.
constexpr size_t kRead = 16 << 10, kReadUnparsed = 64 << 10, kWrite = 256 << 10;
constexpr size_t kSmallBody = 64 << 10;  // smaller bodies are not counted in server_->bodies
constexpr size_t kCopied = 64 << 10;     // a larger part of an answer has a write of its own
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// Note [Time of the server's thread]
// One thread, the I/O thread, serves all connections. It may spend 5 ms of processor time on a
// request, but not without interruption: between two parts of a body, header or answer it serves
// other connections. A body of 4 MiB with a Content-Length takes 1.5 ms: 64 reads of 64 KiB, about
// 5 µs each, and two passes over the bytes, one to allocate the memory and one in which the system
// copies them. A chunked body takes 2 ms: 256 reads of 16 KiB, and one pass more because the parser
// copies it. The buffer grows by a factor of 64, so that its bytes move once. A client that sends
// small parts causes a read for each part: ReadPace bounds the reads of a request. HandlerPool
// handles large requests, and adjacent parts of a stream are written together. Lookups of keys,
// connections and limits take time that does not grow with their number. `io_time_test.cpp`
// measures all of this.

// Returns the protocol error for an error of a read or of the parser. Status 0 means that the
// client has left or timed out.
ProtocolError find_protocol_error(const Connection::Code& error) {
  if (error == http::error::header_limit) return {431, "the header is too large"};
  if (error == http::error::body_limit) return {413, "Payload Too Large"};
  if (error == http::error::buffer_overflow)  // not in a header, whose limit is smaller
    return {413, "a chunk extension or the trailer is too large"};
  if (error == http::error::bad_version)
    return {505, "the HTTP version is not supported; use HTTP/1.1"};
  if (error == http::error::end_of_stream || error == http::error::partial_message) return {};
  const bool spoken = error.category() == Connection::Code(http::error::bad_method).category();
  return spoken ? ProtocolError{400, "this is not an HTTP request"} : ProtocolError{};
}

HttpReply too_many(const char* what) {
  return {.status = 503,
          .body = std::string(R"({"error":"Too many )") + what + R"("})",
          .headers = {{"Retry-After", "5"}}};
}

// Calls the handler for a request unless its client has left.
void call_handler(const HttpServer::State& server, HttpRequest request,
                  const std::shared_ptr<ConnectionExchange>& exchange) {
  if (exchange->gone()) return server.refused(499);
  try {
    server.handler(std::move(request), exchange);
  } catch (const std::exception& error) {
    log_error("a request failed: {}", error.what());
    exchange->answer(failed_reply());
  }
}

}  // namespace

std::string_view reason(int status) {
  const boost::beast::string_view text = http::obsolete_reason(http::int_to_status(status));
  return {text.data(), text.size()};
}

Connection::Connection(std::shared_ptr<HttpServer::State> server, Tcp::socket socket, Peer peer)
    : server_(std::move(server)), stream_(std::move(socket)), later_(server_->io),
      write_later_(server_->io), buffer_(server_->options.max_buffer()), peer_(std::move(peer)),
      client_(peer_.client) {
  Code ignored;
  stream_.socket().set_option(Tcp::no_delay(true), ignored);
  server_->connections.insert(this);
  server_->count = server_->connections.size();
  entry_ = server_->table.add(peer_.client, [this] { close(); });
}

Connection::~Connection() {
  count_body(0);
  server_->answers.change(client_, held_, 0);
  entry_.reset();
  server_->leave(this);
}

// Changes the stage. This may allow the server to accept another connection.
void Connection::enter(ConnectionStage stage) {
  if (entry_) entry_->enter(stage);
  server_->accept();
}

// Waits for the first bytes of a request, up to the idle timeout. The header timeout starts then.
void Connection::wait_for_request() {
  if (server_->draining && !first_request_) return close();
  enter(ConnectionStage::idle);
  if (buffer_.size() > 0) return read_header();
  buffer_.shrink_to_fit();
  give_time(server_->options.idle);
  stream_.async_read_some(buffer_.prepare(4096),
                          [self = shared_from_this()](const Code& error, size_t bytes) {
                            if (error) return self->close();
                            self->buffer_.commit(bytes);
                            self->read_header();
                          });
}

// Closes the connection if it waits for its client. A client that has just connected may be about
// to send a request, so it gets time to send it and to read status 503.
void Connection::close_if_waiting(HttpServer::State::WaitingClients clients) {
  if (!entry_) return;
  Code ignored;
  const bool all = clients == HttpServer::State::WaitingClients::all;
  const bool idle =
      entry_->stage() == ConnectionStage::idle && stream_.socket().available(ignored) == 0;
  if ((idle && (all || !first_request_)) || (all && entry_->stage() == ConnectionStage::reading))
    close();
}

// Calls `act` when the pace permits the next read or write.
void Connection::after_pace(asio::steady_timer& timer, const ReadPace& pace,
                            void (Connection::*act)()) {
  const auto wait = pace.wait();
  if (wait.count() == 0) return (this->*act)();
  timer.expires_after(wait);
  timer.async_wait([self = shared_from_this(), act](const Code& error) {
    if (!error) (self.get()->*act)();
  });
}

// Reads the available bytes, at least one unless there is an error, and calls `next`.
void Connection::read_more(Next next) {
  next_ = next;
  after_pace(later_, pace_, &Connection::read_now);
}

void Connection::read_now() {
  const size_t capacity = boost::beast::read_size(buffer_, kRead);
  if (capacity == 0) return (this->*next_)(http::error::buffer_overflow);
  stream_.async_read_some(buffer_.prepare(capacity),
                          [self = shared_from_this()](const Code& error, size_t bytes) {
                            self->buffer_.commit(bytes);
                            self->pace_.count(bytes);
                            (self.get()->*self->next_)(error);
                          });
}

void Connection::read_header() {
  enter(ConnectionStage::reading);
  ends_ = head_only_ = false;
  framing_ = received_ = 0;
  pace_ = write_pace_ = {};
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(server_->options.max_header));
  parser_->body_limit(server_->options.max_body);
  give_time(server_->options.header);
  on_header_bytes({});
}

void Connection::on_header_bytes(const Code& error) {
  if (error) return refuse(find_protocol_error(error));
  Code parsed;
  buffer_.consume(parser_->put(buffer_.data(), parsed));
  if (parsed == http::error::need_more) return read_more(&Connection::on_header_bytes);
  on_header(parsed);
}

void Connection::read_head() {
  const auto& head = parser_->get();
  version_ = head.version();
  keep_alive_ = head.keep_alive() && version_ == 11;
  head_only_ = head.method() == http::verb::head;
  request_ = {.method = std::string(head.method_string()), .path = "", .query = ""};
  request_.set_target({head.target().data(), head.target().size()});
  for (const auto& field : head)
    request_.headers.emplace_back(lower_ascii(std::string(field.name_string())), field.value());
  request_.address = peer_.address;
  if (server_->options.proxies > 0)
    client_ = client_group(request_.client(server_->options.proxies));
}

ProtocolError Connection::check_head() const {
  const ServerOptions& options = server_->options;
  const ProtocolError wrong = fovea::find_protocol_error(request_, version_);
  if (wrong.status != 0) return wrong;
  if (!options.hosts.empty() && request_.count("host") > 0 &&
      std::ranges::find(options.hosts, host_name(request_.header("host"))) == options.hosts.end())
    return {421, "the Host header names another server; the server accepts those of `allow_host`"};
  if (parser_->content_length().value_or(0) > options.max_body) return {413, "Payload Too Large"};
  return {};
}

void Connection::on_header(const Code& error) {
  if (error) return refuse(find_protocol_error(error));
  read_head();
  if (const ProtocolError wrong = check_head(); wrong.status != 0) return refuse(wrong);
  if (server_->options.screen && !parser_->is_done())
    if (auto reply = server_->options.screen(request_)) return refuse(std::move(*reply));
  parser_->eager(true);
  give_time(server_->options.body);
  if (request_.count("expect") == 0 || version_ == 10) return read_body();
  asio::async_write(stream_, asio::buffer(kContinue),
                    [self = shared_from_this()](const Code& failed, size_t) {
                      failed ? self->close() : self->read_body();
                    });
}

// Reads the body in parts. Received bytes count against limits, announced bytes do not.
void Connection::read_body() {
  if (parser_->is_done()) return hand_over();
  if (parser_->chunked()) return on_chunks({});
  const size_t length = *parser_->content_length();
  received_ = std::min(length, buffer_.size());
  request_.body.reserve(length);  // the system assigns memory when bytes arrive
  request_.body.assign(static_cast<const char*>(buffer_.data().data()), received_);
  buffer_.consume(received_);
  if (accept_body_bytes(received_)) after_pace(later_, pace_, &Connection::read_rest);
}

// Reads the rest of a body with a Content-Length directly into request_.body.
void Connection::read_rest() {
  const size_t length = *parser_->content_length();
  if (received_ == length) return hand_over();
  std::string& body = request_.body;
  if (received_ == body.size()) body.resize(std::min(length, received_ + kReadUnparsed));
  stream_.async_read_some(asio::buffer(body.data() + received_, body.size() - received_),
                          [self = shared_from_this()](const Code& error, size_t bytes) {
                            self->on_rest(error, bytes);
                          });
}

void Connection::on_rest(const Code& error, size_t bytes) {
  if (error) return refuse(find_protocol_error(error));
  pace_.count(bytes);
  received_ += bytes;
  if (accept_body_bytes(received_)) after_pace(later_, pace_, &Connection::read_rest);
}

void Connection::on_chunks(const Code& error) {
  if (error) return refuse(find_protocol_error(error));
  std::string& body = parser_->get().body();
  if (body.size() > kSmallBody && body.capacity() < body.size() + kRead)
    body.reserve(std::min(server_->options.max_body, 64 * body.size()));
  Code parsed;
  const size_t used = buffer_.size() > 0 ? parser_->put(buffer_.data(), parsed) : 0;
  buffer_.consume(used);
  framing_ += used;
  if (parsed && parsed != http::error::need_more) return refuse(find_protocol_error(parsed));
  if (framing_ > body.size() + server_->options.max_framing)
    return refuse(ProtocolError{413, "the framing of the chunks is too large"});
  if (!accept_body_bytes(body.size())) return;
  if (!parser_->is_done()) {
    buffer_.reserve(std::min(kRead, buffer_.max_size()));
    return read_more(&Connection::on_chunks);
  }
  request_.body = std::move(body);
  hand_over();
}

// Counts `bytes` of this body. Returns false and refuses the request if all bodies together exceed
// the limits.
bool Connection::accept_body_bytes(size_t bytes) {
  count_body(bytes);
  if (body_ == 0 || server_->bodies.allows(client_, body_)) return true;
  refuse(too_many("large requests are being read"));
  return false;
}

void Connection::count_body(size_t bytes) {
  const size_t now = bytes > kSmallBody ? bytes : 0;
  server_->count_body(client_, std::exchange(body_, now), now);
}

void Connection::hand_over() {
  parser_.reset();
  stream_.expires_never();
  const auto exchange = std::make_shared<ConnectionExchange>(shared_from_this());
  current_ = exchange;
  first_request_ = false;
  enter(ConnectionStage::working);
  if (!server_->draining) {
    watch(exchange);
    return handle(exchange);
  }
  count_body(0);
  server_->refused(503);
  exchange->answer({.status = 503, .body = R"({"error":"The server is shutting down"})"});
}

// Handles a complete request. The time of a handler grows with the request, so the handler pool
// runs the handlers of large requests.
void Connection::handle(const std::shared_ptr<ConnectionExchange>& exchange) {
  const ServerOptions& options = server_->options;
  const bool costly = options.costly && options.costly(request_);
  if (!costly && request_.body.size() + request_.query.size() <= options.small_request)
    return call_handler(*server_, std::move(request_), exchange);
  const bool added =
      server_->pool->add(client_, [server = server_.get(), exchange,
                                   request = std::make_shared<HttpRequest>(std::move(request_))] {
        call_handler(*server, std::move(*request), exchange);
        exchange->release_body();
      });
  if (added) return;
  count_body(0);
  server_->refused(503);
  exchange->answer(too_many("large requests are waiting"));
}

// Detects if the client leaves. If the client sends its next request early, the connection reads it
// only after it has written the answer.
void Connection::watch(std::weak_ptr<ConnectionExchange> exchange) {
  stream_.socket().async_wait(
      Tcp::socket::wait_read, [self = shared_from_this(), exchange](const Code& error) {
        const auto locked = exchange.lock();
        if (error || !locked || !self->is_current(locked.get())) return;
        char byte;
        const auto got =
            recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (got > 0) return;
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return self->watch(exchange);
        if (got < 0 || self->version_ == 10 || locked->begun()) return locked->leave();
        self->on_end_of_input(locked);
      });
}

// Note [End of input]
// A client that ended its side of the connection has either left or waits for its answer. TCP does
// not distinguish the two cases. But if the client has closed its socket, its system answers
// further bytes with a reset. So the server sends `100 Continue` once, which HTTP/1.1 allows before
// every answer. If the client leaves later, the server notices it when it writes the answer.
void Connection::on_end_of_input(const std::shared_ptr<ConnectionExchange>& exchange) {
  stream_.socket().async_wait(Tcp::socket::wait_error,
                              [exchange = std::weak_ptr(exchange)](const Code& failed) {
                                const auto locked = exchange.lock();
                                if (!failed && locked) locked->leave();
                              });
  write(exchange.get(), std::string(kContinue), AnswerPart::more);
}

void Connection::refuse(const ProtocolError& wrong) {
  if (wrong.status == 0) return close();
  refuse(HttpReply{wrong.status, std::string(R"({"error":")") + wrong.text + R"("})"});
}

void Connection::refuse(HttpReply reply) {
  server_->refused(reply.status);
  parser_.reset();
  {
    const HttpRequest refused = std::move(request_);
  }  // releases the memory of the request; an assignment would not
  request_ = {};
  count_body(0);
  keep_alive_ = false;
  answer(nullptr, std::move(reply));
}

// Counts bytes that wait for the client to read them. Returns false if they exceed the limit of
// this client or of all clients.
bool Connection::hold_for_client(size_t bytes) {
  server_->answers.change(client_, held_, held_ + bytes);
  if (server_->answers.allows(client_, held_ + bytes)) {
    held_ += bytes;
    return true;
  }
  server_->answers.change(client_, held_ + bytes, held_);
  return false;
}

// Adds bytes to the answer. Parts that arrive during a write are combined into the next write.
void Connection::enqueue(std::string bytes) {
  if (waiting_.size() > 1 && waiting_.back().size() + bytes.size() <= kCopied)
    waiting_.back() += bytes;
  else
    waiting_.push_back(std::move(bytes));
  if (waiting_.size() == 1) write_next();
}

void Connection::answer(const HttpExchange* exchange, HttpReply reply) {
  if (!accepts_answer(exchange)) return;
  std::string head = whole_head_of(reply, after_answer());
  std::string body = head_only_ ? "" : std::move(reply.body);
  if (!hold_for_client(head.size() + body.size())) {
    reply = too_many("answers wait to be read");
    head = whole_head_of(reply, after_answer());
    body = head_only_ ? "" : std::move(reply.body);
    held_ += head.size() + body.size();
    server_->answers.change(client_, held_ - head.size() - body.size(), held_);
  }
  ends_ = true;
  if (body.size() <= kCopied) return enqueue(head + body);
  enqueue(std::move(head));
  enqueue(std::move(body));
}

// Whether the socket accepts more bytes. If it does not, the client has not read the previous
// bytes. If it does, the I/O thread is late with its writes, not the client with its reads.
bool Connection::socket_accepts_bytes() {
  pollfd socket{.fd = stream_.socket().native_handle(), .events = POLLOUT, .revents = 0};
  return poll(&socket, 1, 0) == 1 && (socket.revents & POLLOUT);
}

void Connection::write(const HttpExchange* exchange, std::string bytes, AnswerPart part) {
  if (!accepts_answer(exchange)) return;
  const bool much = part == AnswerPart::more && held_ > server_->options.max_backlog;
  if ((much && !socket_accepts_bytes()) || !hold_for_client(bytes.size())) return close();
  ends_ = part == AnswerPart::last;
  enqueue(std::move(bytes));
}

void Connection::write_next() {
  enter(ConnectionStage::writing);
  stream_.expires_after(server_->options.write);
  written_ = 0;
  write_now();
}

void Connection::write_now() {
  const auto rest = std::string_view(waiting_.front()).substr(written_, kWrite);
  stream_.async_write_some(asio::buffer(rest),
                           [self = shared_from_this()](const Code& error, size_t bytes) {
                             self->on_written(error, bytes);
                           });
}

// Continues after a write. A client with a small receive window accepts an answer in small parts.
// The pace delays the next part, so that the client can accept more bytes at once.
void Connection::on_written(const Code& error, size_t bytes) {
  if (error) return close();
  const size_t written = waiting_.front().size();
  const bool incomplete = bytes < std::min(kWrite, written - written_);
  written_ += bytes;
  if (incomplete) write_pace_.count(bytes);
  if (written_ < written) return after_pace(write_later_, write_pace_, &Connection::write_now);
  waiting_.pop_front();
  server_->answers.change(client_, held_, held_ - written);
  held_ -= written;
  if (!waiting_.empty()) return write_next();
  stream_.expires_never();
  if (!ends_) return enter(ConnectionStage::working);
  current_.reset();
  count_body(0);
  after_answer() == ConnectionReuse::keep_alive ? wait_for_request() : close_gently();
}

// Ends this side and discards input until the client closes. An immediate close while the client is
// still sending would discard the answer.
void Connection::close_gently() {
  Code ignored;
  if (!closing_) stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
  if (!closing_) stream_.expires_after(kCloseTimeout);
  closing_ = true;
  after_pace(later_, pace_, &Connection::discard);
}

void Connection::discard() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(std::min(kRead, buffer_.max_size())),
                          [self = shared_from_this()](const Code& error, size_t bytes) {
                            self->discarded_ += bytes;
                            self->pace_.count(bytes);
                            const bool enough = self->discarded_ > kMaxDiscarded;
                            error || enough ? self->close() : self->close_gently();
                          });
}

void Connection::close() {
  closing_ = true;
  entry_.reset();
  if (const auto exchange = current_.lock()) exchange->leave();
  later_.cancel();
  write_later_.cancel();
  Code ignored;
  stream_.socket().shutdown(Tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace fovea

#include "serve/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <deque>
#include <optional>
#include <thread>
#include <unordered_set>

#include "base/check.h"
#include "base/log.h"

namespace fovea {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Code = beast::error_code;

constexpr std::chrono::milliseconds kFarewell{2'000};  // for a client to read why it was refused
constexpr size_t kFarewellBytes = 1 << 20;
constexpr std::chrono::milliseconds kNoDescriptors{100};  // before the next try to accept

// What a client is told that cannot be served; status 0: nothing.
struct Complaint {
  int status = 0;
  const char* text = "";
};

// What was wrong with its bytes. Nobody is there to be told where time ran out: then the stream is
// closed already.
Complaint complaint_of(const Code& error) {
  if (error == http::error::header_limit) return {431, "the header is too large"};
  if (error == http::error::body_limit) return {413, "Payload Too Large"};
  if (error == http::error::bad_version) return {505, "HTTP/1.1 is spoken here"};
  if (error == http::error::end_of_stream || error == http::error::partial_message) return {};
  const bool spoken = error.category() == Code(http::error::bad_method).category();
  return spoken ? Complaint{400, "this is not an HTTP request"} : Complaint{};
}

enum class Part { more, last };         // of an answer
enum class Idle { asked_before, all };  // clients that do not ask just now

class Connection;

}  // namespace

struct Server::State : std::enable_shared_from_this<Server::State> {
  State(ServerOptions o, Handler h) : options(std::move(o)), handler(std::move(h)) {}

  void listen();
  void accept();
  void drain();
  void close_idle(Idle whom);
  void close();
  void leave(Connection* connection);

  ServerOptions options;
  Handler handler;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  std::optional<asio::signal_set> signals;
  std::unordered_set<Connection*> connections;
  std::atomic<size_t> count{0};
  bool draining = false, accepting = false;
  int port = 0;
  std::thread thread;
};

namespace {

class Turn;

// One client: a request is read, answered, then the next, all on the server's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Server::State> server, tcp::socket socket);
  ~Connection() { server_->leave(this); }

  void wait_for_request();
  // A client that has just come may be about to ask: it is given time to be told that it is late.
  void close_if_idle(Idle whom) {
    Code ignored;
    if (idle_ && (whom == Idle::all || !fresh_) && stream_.socket().available(ignored) == 0)
      close();
  }
  void write(const Turn* turn, std::string bytes, Part part);
  void close();
  asio::io_context& io() { return server_->io; }
  bool is_current(const Turn* turn) const { return current_.lock().get() == turn; }
  bool keep_alive() const { return keep_alive_ && !server_->draining; }
  Manner manner() const { return {keep_alive(), head_only_}; }
  bool chunked() const { return version_ == 11; }

 private:
  void read_header();
  void on_header(const Code& error);
  void read_body();
  void hand_over();
  void watch(std::weak_ptr<Turn> turn);
  void refuse(const Complaint& wrong);
  void write_next();
  void farewell();
  Complaint complaint() const;

  std::shared_ptr<Server::State> server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::weak_ptr<Turn> current_;
  std::deque<std::string> waiting_;  // parts of the answer; the first is being written
  bool fresh_ = true, idle_ = true, keep_alive_ = false, head_only_ = false, ends_ = false,
       closing_ = false;
  unsigned version_ = 11;
  size_t discarded_ = 0;
};

const Reply kFailed{.status = 500, .body = R"({"error":"Internal Server Error"})"};

class Turn : public Exchange, public std::enable_shared_from_this<Turn> {
 public:
  explicit Turn(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  // On whatever thread: the connection itself is let go on the server's.
  ~Turn() override {
    const bool unanswered = !ended_.exchange(true);
    asio::io_context& io = connection_->io();
    asio::post(io, [connection = std::move(connection_), unanswered, begun = begun_.load()] {
      if (!unanswered) return;
      begun ? connection->close() : answer(*connection, nullptr, kFailed);
    });
  }

  void answer(Reply reply) override {
    if (ended_.exchange(true)) return;
    asio::post(connection_->io(), [self = shared_from_this(), reply = std::move(reply)] {
      answer(*self->connection_, self.get(), reply);
    });
  }

  void begin(Reply head) override {
    begun_ = true;
    asio::post(connection_->io(), [self = shared_from_this(), head = std::move(head)] {
      Connection& connection = *self->connection_;
      std::string bytes = head_of(head) + "Cache-Control: no-cache\r\n";
      bytes += connection.chunked() ? "Transfer-Encoding: chunked\r\n" : "";
      bytes +=
          connection.keep_alive() && connection.chunked() ? "\r\n" : "Connection: close\r\n\r\n";
      connection.write(self.get(), std::move(bytes), Part::more);
    });
  }

  void send(std::string part) override {
    if (part.empty()) return;  // an empty chunk would be the end
    asio::post(connection_->io(), [self = shared_from_this(), part = std::move(part)] {
      Connection& connection = *self->connection_;
      connection.write(self.get(), connection.chunked() ? chunk(part) : part, Part::more);
    });
  }

  void end() override {
    if (ended_.exchange(true)) return;
    asio::post(connection_->io(), [self = shared_from_this()] {
      Connection& connection = *self->connection_;
      connection.write(self.get(), connection.chunked() ? "0\r\n\r\n" : "", Part::last);
    });
  }

  bool gone() const override { return gone_.load(std::memory_order_relaxed); }
  void leave() { gone_ = true; }

 private:
  static void answer(Connection& connection, const Turn* turn, const Reply& reply) {
    connection.write(turn, bytes_of(reply, connection.manner()), Part::last);
  }

  std::shared_ptr<Connection> connection_;
  std::atomic<bool> ended_{false}, begun_{false}, gone_{false};
};

Connection::Connection(std::shared_ptr<Server::State> server, tcp::socket socket)
    : server_(std::move(server)), stream_(std::move(socket)) {
  Code ignored;
  stream_.socket().set_option(tcp::no_delay(true), ignored);
  server_->connections.insert(this);
  server_->count = server_->connections.size();
}

// The first bytes may be long in coming, the rest of the header may not.
void Connection::wait_for_request() {
  if (server_->draining && !fresh_) return close();
  idle_ = true;
  if (buffer_.size() > 0) return read_header();
  stream_.expires_after(server_->draining ? kFarewell : server_->options.idle);
  stream_.async_read_some(buffer_.prepare(4096),
                          [self = shared_from_this()](const Code& error, size_t bytes) {
                            if (error) return self->close();
                            self->buffer_.commit(bytes);
                            self->read_header();
                          });
}

void Connection::read_header() {
  idle_ = ends_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(server_->options.max_header));
  parser_->body_limit(server_->options.max_body);
  stream_.expires_after(server_->options.header);
  http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](const Code& error, size_t) { self->on_header(error); });
}

// What is wrong with a header that could be read.
Complaint Connection::complaint() const {
  const auto& request = parser_->get();
  const auto known = [&](http::field f) { return request.count(f) > 0; };
  if (request.version() != 10 && request.version() != 11) return {505, "HTTP/1.1 is spoken here"};
  if (request.version() == 11 && request.count(http::field::host) != 1)
    return {400, "a request needs one Host header"};
  if (request.count(http::field::content_length) > 1) return {400, "there are two lengths"};
  if (known(http::field::transfer_encoding) &&
      (known(http::field::content_length) || request.version() == 10 ||
       !beast::iequals(request[http::field::transfer_encoding], "chunked")))
    return {400, "Transfer-Encoding is not understood"};
  if (known(http::field::content_encoding) && request[http::field::content_encoding] != "identity")
    return {415, "compressed requests are not supported"};
  if (known(http::field::expect) && !beast::iequals(request[http::field::expect], "100-continue"))
    return {417, "Expect is not understood"};
  const auto length = parser_->content_length();
  if (length && *length > server_->options.max_body) return {413, "Payload Too Large"};
  return {};
}

void Connection::on_header(const Code& error) {
  if (error) return refuse(complaint_of(error));
  const auto& request = parser_->get();
  version_ = request.version();
  keep_alive_ = request.keep_alive() && version_ == 11;
  head_only_ = request.method() == http::verb::head;
  if (const Complaint wrong = complaint(); wrong.status != 0) return refuse(wrong);
  if (request.count(http::field::expect) == 0 || version_ == 10) return read_body();
  static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream_, asio::buffer(kGoOn),
                    [self = shared_from_this()](const Code& failed, size_t) {
                      failed ? self->close() : self->read_body();
                    });
}

void Connection::read_body() {
  stream_.expires_after(server_->options.body);
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](const Code& error, size_t) {
                     error ? self->refuse(complaint_of(error)) : self->hand_over();
                   });
}

void Connection::hand_over() {
  auto message = parser_->release();
  const std::string_view target(message.target().data(), message.target().size());
  const size_t question = std::min(target.find('?'), target.size());
  Request request{.method = std::string(message.method_string()),
                  .path = std::string(target.substr(0, question)),
                  .query = std::string(target.substr(std::min(question + 1, target.size())))};
  for (const auto& field : message)
    request.headers.emplace_back(lower(std::string(field.name_string())), field.value());
  request.body = std::move(message.body());
  Code ignored;
  request.address = stream_.socket().remote_endpoint(ignored).address().to_string();
  stream_.expires_never();
  const auto turn = std::make_shared<Turn>(shared_from_this());
  current_ = turn;
  fresh_ = false;
  if (server_->draining)
    return turn->answer({.status = 503, .body = R"({"error":"The server is shutting down"})"});
  watch(turn);
  try {
    server_->handler(std::move(request), turn);
  } catch (const std::exception& error) {
    log_error("a request failed: {}", error.what());
    turn->answer(kFailed);
  }
}

// A client that closes its side has left. One that sends its next request early is not looked
// at again before it has its answer.
void Connection::watch(std::weak_ptr<Turn> turn) {
  stream_.socket().async_wait(
      tcp::socket::wait_read, [self = shared_from_this(), turn](const Code& error) {
        const auto held = turn.lock();
        if (error || !held || !self->is_current(held.get())) return;
        char byte;
        const auto got =
            recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (got > 0) return;
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return self->watch(turn);
        held->leave();
      });
}

void Connection::refuse(const Complaint& wrong) {
  if (wrong.status == 0) return close();
  if (server_->options.refused) server_->options.refused(wrong.status);
  const Reply reply{wrong.status, std::string(R"({"error":")") + wrong.text + R"("})"};
  keep_alive_ = false;
  write(nullptr, bytes_of(reply, manner()), Part::last);
}

void Connection::write(const Turn* turn, std::string bytes, Part part) {
  if (closing_ || ends_ || (turn && !is_current(turn))) return;
  ends_ = part == Part::last;
  waiting_.push_back(std::move(bytes));
  if (waiting_.size() == 1) write_next();
}

void Connection::write_next() {
  stream_.expires_after(server_->options.write);
  asio::async_write(stream_, asio::buffer(waiting_.front()),
                    [self = shared_from_this()](const Code& error, size_t) {
                      if (error) {
                        if (const auto turn = self->current_.lock()) turn->leave();
                        return self->close();
                      }
                      self->waiting_.pop_front();
                      if (!self->waiting_.empty()) return self->write_next();
                      self->stream_.expires_never();
                      if (!self->ends_) return;
                      self->current_.reset();
                      self->keep_alive() ? self->wait_for_request() : self->farewell();
                    });
}

// Closing at once while the client still sends would take the answer away from it.
void Connection::farewell() {
  Code ignored;
  if (!closing_) stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  if (!closing_) stream_.expires_after(kFarewell);
  closing_ = true;
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(16 << 10),
                          [self = shared_from_this()](const Code& error, size_t bytes) {
                            self->discarded_ += bytes;
                            const bool enough = self->discarded_ > kFarewellBytes;
                            error || enough ? self->close() : self->farewell();
                          });
}

void Connection::close() {
  closing_ = true;
  Code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace

void Server::State::listen() {
  Code error;
  const auto address =
      asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  check(!error, Exit::usage, "--host: '", options.host,
        "' is not an address; for example 127.0.0.1, or 0.0.0.0 for all of this machine");
  const tcp::endpoint endpoint(address, static_cast<asio::ip::port_type>(options.port));
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(1024, error);
  if (!error) port = acceptor.local_endpoint(error).port();
  if (!error) return;
  const std::string where = options.host + ":" + std::to_string(options.port);
  check(error != asio::error::address_in_use, Exit::usage, where, " is in use by another program; ",
        "choose another port with --port N, or end that program ('ss -ltnp' shows which it is)");
  check(error != asio::error::access_denied, Exit::usage, where,
        ": ports below 1024 are for root; choose another with --port N");
  fail(Exit::usage, where, ": cannot listen there: ", error.message());
}

void Server::State::accept() {
  accepting = connections.size() < options.max_connections && acceptor.is_open();
  if (!accepting) return;
  acceptor.async_accept([self = shared_from_this()](const Code& error, tcp::socket socket) {
    self->accepting = false;
    if (error == asio::error::operation_aborted) return;
    if (error) {  // there are no descriptors left: those who are being served go first
      self->pause.expires_after(kNoDescriptors);
      return self->pause.async_wait([self](const Code& failed) {
        if (!failed) self->accept();
      });
    }
    std::make_shared<Connection>(self, std::move(socket))->wait_for_request();
    self->accept();
  });
}

void Server::State::leave(Connection* connection) {
  connections.erase(connection);
  count = connections.size();
  if (!accepting && !draining && acceptor.is_open())
    asio::post(io, [self = shared_from_this()] {
      if (!self->accepting) self->accept();
    });
}

void Server::State::drain() {
  if (draining) return;
  draining = true;
  Code ignored;
  acceptor.non_blocking(true, ignored);
  for (Code none; !none;) {  // those who came before the signal are told that they came too late
    tcp::socket socket(io);
    acceptor.accept(socket, none);
    if (!none)
      std::make_shared<Connection>(shared_from_this(), std::move(socket))->wait_for_request();
  }
  acceptor.close(ignored);
  close_idle(Idle::asked_before);
  pause.expires_after(kFarewell);
  pause.async_wait([self = shared_from_this()](const Code&) { self->close_idle(Idle::all); });
}

void Server::State::close_idle(Idle whom) {
  for (Connection* each : std::vector(connections.begin(), connections.end()))
    each->close_if_idle(whom);
}

void Server::State::close() {
  drain();
  if (signals) signals->cancel();
  pause.cancel();
  for (Connection* each : std::vector(connections.begin(), connections.end())) each->close();
  work.reset();
}

Server::Server(const ServerOptions& options, Handler handler)
    : state_(std::make_shared<State>(options, std::move(handler))) {
  state_->listen();
}

// Connections, their handlers and the state hold each other, so that all are closed and run out.
void Server::stop() {
  if (!state_->thread.joinable()) return;
  asio::post(state_->io, [state = state_] { state->close(); });
  state_->thread.join();
}

int Server::port() const { return state_->port; }
size_t Server::connections() const { return state_->count; }

void Server::start() {
  asio::post(state_->io, [state = state_] { state->accept(); });
  state_->thread = std::thread([state = state_.get()] {
    [[maybe_unused]] const int lower = nice(5);  // of this thread: who is translated comes first
    while (!state->io.stopped()) {
      try {
        state->io.run();
      } catch (const std::exception& error) {
        log_error("a connection failed: {}", error.what());
      }
    }
  });
}

void Server::on_signal(std::function<void(int)> act) {
  state_->signals.emplace(state_->io, SIGINT, SIGTERM, SIGHUP);
  struct Wait {
    std::shared_ptr<State> state;
    std::function<void(int)> act;
    void operator()(const Code& error, int signal) {
      if (error) return;
      act(signal);
      state->signals->async_wait(Wait{*this});
    }
  };
  state_->signals->async_wait(Wait{state_, std::move(act)});
}

void Server::drain() {
  asio::post(state_->io, [state = state_] { state->drain(); });
}

}  // namespace fovea

#include "serve/server.h"

#include <malloc.h>
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
#include "serve/turn.h"

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
constexpr size_t kSmallBody = 64 << 10;  // free, so that large ones do not shut out ordinary ones
constexpr size_t kMuchMemory = 16 << 20;
constexpr std::chrono::milliseconds kLookAgain{1'000};  // for a client that sends no more
constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";

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

enum class Stage { idle, asking, asked };  // of a connection: its request is complete when asked
enum class Unasked { idle, all };          // clients whom no answer is owed

class Connection;

}  // namespace

struct Server::State : std::enable_shared_from_this<Server::State> {
  State(ServerOptions o, Handler h) : options(std::move(o)), handler(std::move(h)) {}

  void listen();
  void accept();
  void drain();
  void close_unasked(Unasked whom);
  void cut();
  void close();
  void count_body(size_t before, size_t now);
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
  size_t bodies = 0, most_bodies = 0;  // bytes that are being read
  bool draining = false, accepting = false;
  int port = 0;
  std::thread thread;
};

namespace {

// One client: a request is read, answered, then the next, all on the server's thread.
class Connection : public Wire, public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Server::State> server, tcp::socket socket);
  ~Connection() override {
    count_body(0);
    server_->leave(this);
  }

  void wait_for_request();
  // A client that has just come may be about to ask: it is given time to be told that it is late.
  void close_if_unasked(Unasked whom) {
    Code ignored;
    const bool all = whom == Unasked::all;
    const bool idle = stage_ == Stage::idle && stream_.socket().available(ignored) == 0;
    if ((idle && (all || !fresh_)) || (all && stage_ == Stage::asking)) close();
  }
  void write(const Exchange* turn, std::string bytes, Part part) override;
  void close() override;
  void post(std::function<void()> act) override { asio::post(server_->io, std::move(act)); }
  Manner manner() const override { return {keep_alive(), head_only_}; }
  bool chunked() const override { return version_ == 11; }

 private:
  void read_header();
  void on_header(const Code& error);
  void read_head();
  void read_body();
  void count_body(size_t bytes);
  void hand_over();
  void watch(std::weak_ptr<Turn> turn);
  void look_whether_there(std::weak_ptr<Turn> turn);
  void refuse(const Complaint& wrong);
  void refuse(const Reply& reply);
  void write_next();
  void farewell();
  bool is_current(const Exchange* turn) const { return current_.lock().get() == turn; }
  bool keep_alive() const { return keep_alive_ && !server_->draining; }
  // For the client to send what it has to: less while the program ends.
  void give_time(std::chrono::milliseconds limit) {
    stream_.expires_after(server_->draining ? std::min(limit, kFarewell) : limit);
  }

  std::shared_ptr<Server::State> server_;
  beast::tcp_stream stream_;
  asio::steady_timer look_again_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Request request_;
  std::weak_ptr<Turn> current_;
  std::deque<std::string> waiting_;  // parts of the answer; the first is being written
  Stage stage_ = Stage::idle;
  bool fresh_ = true, keep_alive_ = false, head_only_ = false, ends_ = false, closing_ = false;
  unsigned version_ = 11;
  size_t body_ = 0, discarded_ = 0;  // bytes that count among those of all bodies; thrown away
};

Connection::Connection(std::shared_ptr<Server::State> server, tcp::socket socket)
    : server_(std::move(server)), stream_(std::move(socket)), look_again_(server_->io) {
  Code ignored;
  stream_.socket().set_option(tcp::no_delay(true), ignored);
  server_->connections.insert(this);
  server_->count = server_->connections.size();
}

// The first bytes may be long in coming, the rest of the header may not.
void Connection::wait_for_request() {
  if (server_->draining && !fresh_) return close();
  stage_ = Stage::idle;
  if (buffer_.size() > 0) return read_header();
  give_time(server_->options.idle);
  stream_.async_read_some(buffer_.prepare(4096),
                          [self = shared_from_this()](const Code& error, size_t bytes) {
                            if (error) return self->close();
                            self->buffer_.commit(bytes);
                            self->read_header();
                          });
}

void Connection::read_header() {
  stage_ = Stage::asking;
  ends_ = head_only_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(server_->options.max_header));
  parser_->body_limit(server_->options.max_body);
  give_time(server_->options.header);
  http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](const Code& error, size_t) { self->on_header(error); });
}

void Connection::read_head() {
  const auto& head = parser_->get();
  version_ = head.version();
  keep_alive_ = head.keep_alive() && version_ == 11;
  head_only_ = head.method() == http::verb::head;
  request_ = {.method = std::string(head.method_string()), .path = "", .query = ""};
  request_.set_target({head.target().data(), head.target().size()});
  for (const auto& field : head)
    request_.headers.emplace_back(lower(std::string(field.name_string())), field.value());
  Code ignored;
  request_.address = stream_.socket().remote_endpoint(ignored).address().to_string();
}

void Connection::on_header(const Code& error) {
  if (error) return refuse(complaint_of(error));
  read_head();
  Complaint wrong = complaint_of(request_, version_);
  if (parser_->content_length().value_or(0) > server_->options.max_body && wrong.status == 0)
    wrong = {413, "Payload Too Large"};
  if (wrong.status != 0) return refuse(wrong);
  if (server_->options.screen && !parser_->is_done())
    if (auto reply = server_->options.screen(request_)) return refuse(*reply);
  parser_->eager(true);
  give_time(server_->options.body);
  if (request_.count("expect") == 0 || version_ == 10) return read_body();
  asio::async_write(stream_, asio::buffer(kGoOn),
                    [self = shared_from_this()](const Code& failed, size_t) {
                      failed ? self->close() : self->read_body();
                    });
}

// Part by part: how much it is counts as it comes, not as it is announced.
void Connection::read_body() {
  if (parser_->is_done()) return hand_over();
  http::async_read_some(
      stream_, buffer_, *parser_, [self = shared_from_this()](const Code& error, size_t) {
        if (error) return self->refuse(complaint_of(error));
        self->count_body(self->parser_->get().body().size());
        const size_t all = self->server_->bodies;
        if (self->body_ == 0 || all == self->body_ || all <= self->server_->options.max_bodies)
          return self->read_body();
        self->refuse(Reply{.status = 503,
                           .body = R"({"error":"Too many large requests are being read"})",
                           .headers = {{"Retry-After", "5"}}});
      });
}

void Connection::count_body(size_t bytes) {
  const size_t now = bytes > kSmallBody ? bytes : 0;
  server_->count_body(std::exchange(body_, now), now);
}

void Connection::hand_over() {
  request_.body = std::move(parser_->get().body());
  parser_.reset();
  count_body(0);
  stream_.expires_never();
  const auto turn = std::make_shared<Turn>(shared_from_this());
  current_ = turn;
  fresh_ = false;
  stage_ = Stage::asked;
  if (server_->draining) {
    if (server_->options.refused) server_->options.refused(503);
    return turn->answer({.status = 503, .body = R"({"error":"The server is shutting down"})"});
  }
  watch(turn);
  try {
    server_->handler(std::move(request_), turn);
  } catch (const std::exception& error) {
    log_error("a request failed: {}", error.what());
    turn->answer(failed_reply());
  }
}

// Whether the client leaves. One that sends its next request early is not looked at again before it
// has its answer.
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
        if (got < 0 || self->version_ == 10 || held->begun()) return held->leave();
        self->stream_.socket().async_wait(tcp::socket::wait_error, [turn](const Code& failed) {
          const auto asked = turn.lock();
          if (!failed && asked) asked->leave();
        });
        self->look_whether_there(turn);
      });
}

// The client sends no more. TCP does not tell whether it has left or waits for its answer, but the
// system of one that has left answers bytes with a reset: now and then it is sent some that
// HTTP/1.1 lets stand before every answer.
void Connection::look_whether_there(std::weak_ptr<Turn> turn) {
  const auto held = turn.lock();
  if (!held || !is_current(held.get()) || held->begun()) return;
  write(held.get(), std::string(kGoOn), Part::more);
  look_again_.expires_after(kLookAgain);
  look_again_.async_wait([self = shared_from_this(), turn](const Code& error) {
    if (!error) self->look_whether_there(turn);
  });
}

void Connection::refuse(const Complaint& wrong) {
  if (wrong.status == 0) return close();
  refuse(Reply{wrong.status, std::string(R"({"error":")") + wrong.text + R"("})"});
}

void Connection::refuse(const Reply& reply) {
  if (server_->options.refused) server_->options.refused(reply.status);
  parser_.reset();
  count_body(0);
  stage_ = Stage::asked;
  keep_alive_ = false;
  write(nullptr, bytes_of(reply, manner()), Part::last);
}

void Connection::write(const Exchange* turn, std::string bytes, Part part) {
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
  if (const auto turn = current_.lock()) turn->leave();
  look_again_.cancel();
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
  close_unasked(Unasked::idle);
  pause.expires_after(kFarewell);
  pause.async_wait([self = shared_from_this()](const Code&) { self->close_unasked(Unasked::all); });
}

void Server::State::close_unasked(Unasked whom) {
  for (Connection* each : std::vector(connections.begin(), connections.end()))
    each->close_if_unasked(whom);
}

void Server::State::cut() {
  for (Connection* each : std::vector(connections.begin(), connections.end())) each->close();
}

// The memory of many large bodies goes back to the system when they are gone.
void Server::State::count_body(size_t before, size_t now) {
  bodies += now - before;
  most_bodies = std::max(most_bodies, bodies);
  if (bodies > 0 || most_bodies < kMuchMemory) return;
  most_bodies = 0;
  asio::post(io, [] { malloc_trim(0); });
}

void Server::State::close() {
  drain();
  if (signals) signals->cancel();
  pause.cancel();
  cut();
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

void Server::cut() {
  asio::post(state_->io, [state = state_] { state->cut(); });
}

}  // namespace fovea

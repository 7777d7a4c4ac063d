#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>

#include "http/connection_table.h"
#include "http/exchange.h"
#include "http/handler_pool.h"
#include "http/read_pace.h"
#include "http/server.h"

// Declarations that server.cpp and connection.cpp share. No other file includes Boost.
namespace fovea {

class Connection;

inline constexpr std::chrono::milliseconds kCloseTimeout{
    2'000};  // time of the client to read a refusal

// The state of a server. Only the I/O thread may use it, except `options`, `handler`, `pool`
// and `count`.
struct HttpServer::State : std::enable_shared_from_this<HttpServer::State> {
  using Code = boost::beast::error_code;
  using Tcp = boost::asio::ip::tcp;
  // Which connections to close: idle ones, or also new ones and those with an incomplete request.
  enum class WaitingClients { idle, all };

  State(ServerOptions o, HttpHandler h);

  void listen();
  void accept();  // accepts one more, unless it waits for one or the table is full
  void on_connection(Code error);
  void admit(Tcp::socket socket);
  void drain();
  void close_waiting(WaitingClients clients);
  void cut();
  void close();
  void count_body(const std::string& client, size_t before, size_t now);
  void leave(Connection* connection);
  void refused(int status) const {
    if (options.refused) options.refused(status);
  }

  const ServerOptions options;
  const HttpHandler handler;
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  Tcp::acceptor acceptor{io};
  boost::asio::steady_timer pause{io};
  std::optional<boost::asio::signal_set> signals;
  std::unordered_set<Connection*> connections;
  ConnectionTable table;
  ByteBudget bodies, answers;
  std::optional<HandlerPool> pool;  // from start() to stop()
  std::atomic<size_t> count{0};     // the number of connections
  size_t most_bodies = 0;
  bool draining = false, accepting = false;
  int port = 0;
  std::thread thread;
};

// A connection to a client. It reads a request, writes the answer, and continues with the next
// request. Buffered input is bounded: the buffer has a maximum size, and the connection reads
// nothing while a request is being answered. Only the I/O thread uses it: see Note [Time of the
// server's thread].
class Connection : public ConnectionWriter, public std::enable_shared_from_this<Connection> {
 public:
  using Code = HttpServer::State::Code;
  using Tcp = HttpServer::State::Tcp;

  struct Peer {
    std::string address, client;  // client: the group of the address
  };
  Connection(std::shared_ptr<HttpServer::State> server, Tcp::socket socket, Peer peer);
  ~Connection() override;

  void wait_for_request();
  void close_if_waiting(HttpServer::State::WaitingClients clients);

  void post(std::function<void()> act) override { boost::asio::post(server_->io, std::move(act)); }
  void write(const HttpExchange* exchange, std::string bytes, AnswerPart part) override;
  void answer(const HttpExchange* exchange, HttpReply reply) override;
  void release_body(const HttpExchange* exchange) override {
    if (is_current(exchange)) count_body(0);
  }
  void close() override;
  ConnectionReuse after_answer() const override {
    return keep_alive_ && !server_->draining ? ConnectionReuse::keep_alive : ConnectionReuse::close;
  }
  bool chunked() const override { return version_ == 11; }

 private:
  using Next = void (Connection::*)(const Code& error);

  void enter(ConnectionStage stage);
  void after_pace(boost::asio::steady_timer& timer, const ReadPace& pace,
                  void (Connection::*act)());
  void read_more(Next next);
  void read_now();
  void read_header();
  void on_header_bytes(const Code& error);
  void on_header(const Code& error);
  void read_head();
  ProtocolError check_head() const;
  void read_body();
  void read_rest();
  void on_rest(const Code& error, size_t bytes);
  void on_chunks(const Code& error);
  bool accept_body_bytes(size_t bytes);
  void count_body(size_t bytes);
  void hand_over();
  void handle(const std::shared_ptr<ConnectionExchange>& exchange);
  void watch(std::weak_ptr<ConnectionExchange> exchange);
  void on_end_of_input(const std::shared_ptr<ConnectionExchange>& exchange);
  void refuse(const ProtocolError& wrong);
  void refuse(HttpReply reply);
  bool hold_for_client(size_t bytes);
  bool socket_accepts_bytes();
  void enqueue(std::string bytes);
  void write_next();
  void write_now();
  void on_written(const Code& error, size_t bytes);
  void close_gently();
  void discard();
  bool is_current(const HttpExchange* exchange) const { return current_.lock().get() == exchange; }
  bool accepts_answer(const HttpExchange* exchange) const {
    return !closing_ && !ends_ && (!exchange || is_current(exchange));
  }
  // Limits the time until the client sends more bytes. The limit is shorter while the server shuts
  // down.
  void give_time(std::chrono::milliseconds limit) {
    stream_.expires_after(server_->draining ? std::min(limit, kCloseTimeout) : limit);
  }

  std::shared_ptr<HttpServer::State> server_;
  boost::beast::tcp_stream stream_;
  boost::asio::steady_timer later_, write_later_;  // pauses of reading and of writing
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  std::unique_ptr<ConnectionTable::Entry> entry_;  // null after close()
  ReadPace pace_;                                  // pace of reading the current request
  ReadPace write_pace_;  // pace of writing its answer: counts incomplete writes
  Next next_ = nullptr;  // read_more() calls it
  HttpRequest request_;
  size_t received_ = 0;  // bytes of request_.body, if the request has a Content-Length
  const Peer peer_;
  std::string client_;  // sender of the request; not the peer if a proxy is between
  std::weak_ptr<ConnectionExchange> current_;
  std::deque<std::string> waiting_;  // parts of the answer; the first is being written
  size_t held_ = 0;                  // bytes in waiting_
  size_t written_ = 0;               // bytes of the first part that are written
  bool first_request_ = true, keep_alive_ = false, head_only_ = false, ends_ = false,
       closing_ = false;
  unsigned version_ = 11;
  size_t body_ = 0;  // bytes counted in server_->bodies
  size_t framing_ = 0, discarded_ = 0;
};

}  // namespace fovea

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

#include "serve/connection_table.h"
#include "serve/handler_pool.h"
#include "serve/pace.h"
#include "serve/server.h"
#include "serve/turn.h"

// What server.cpp and connection.cpp share: no other file includes Boost.
namespace fovea {

class Connection;

inline constexpr std::chrono::milliseconds kFarewell{2'000};  // to read why it was refused

// All of it is for the server's thread alone, except `options`, `handler`, `pool` and `count`.
struct Server::State : std::enable_shared_from_this<Server::State> {
  using Code = boost::beast::error_code;
  using Tcp = boost::asio::ip::tcp;
  enum class Unasked { idle, all };  // clients to whom no answer is owed

  State(ServerOptions o, Handler h);

  void listen();
  void accept();  // the next connection, unless it waits for one already or has no room
  void on_connection(Code error);
  void admit(Tcp::socket socket);
  void drain();
  void close_unasked(Unasked clients);
  void cut();
  void close();
  void count_body(const std::string& client, size_t before, size_t now);
  void leave(Connection* connection);
  void refused(int status) const {
    if (options.refused) options.refused(status);
  }

  const ServerOptions options;
  const Handler handler;
  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  Tcp::acceptor acceptor{io};
  boost::asio::steady_timer pause{io};
  std::optional<boost::asio::signal_set> signals;
  std::unordered_set<Connection*> connections;
  ConnectionTable table;
  ByteBudget bodies, answers;
  std::optional<HandlerPool> pool;  // from start() to stop()
  std::atomic<size_t> count{0};     // of connections
  size_t most_bodies = 0;
  bool draining = false, accepting = false;
  int port = 0;
  std::thread thread;
};

// One client: reads a request, writes its answer, then the next. Input that waits is bounded: the
// buffer has a maximum, and nothing is read while a request is being answered. Note [Time of the
// server's thread]
class Connection : public Wire, public std::enable_shared_from_this<Connection> {
 public:
  using Code = Server::State::Code;
  using Tcp = Server::State::Tcp;

  struct Peer {
    std::string address, client;  // client: the group of the address
  };
  Connection(std::shared_ptr<Server::State> server, Tcp::socket socket, Peer peer);
  ~Connection() override;

  void wait_for_request();
  void close_if_unasked(Server::State::Unasked clients);

  void post(std::function<void()> act) override { boost::asio::post(server_->io, std::move(act)); }
  void write(const Exchange* turn, std::string bytes, Part part) override;
  void answer(const Exchange* turn, Reply reply) override;
  void release_body(const Exchange* turn) override {
    if (is_current(turn)) count_body(0);
  }
  void close() override;
  Connected after_answer() const override {
    return keep_alive_ && !server_->draining ? Connected::keep_alive : Connected::close;
  }
  bool chunked() const override { return version_ == 11; }

 private:
  using Next = void (Connection::*)(const Code& error);

  void enter(Stage stage);
  void when_due(boost::asio::steady_timer& timer, const Pace& pace, void (Connection::*act)());
  void read_more(Next next);
  void read_now();
  void read_header();
  void on_header_bytes(const Code& error);
  void on_header(const Code& error);
  void read_head();
  Complaint complaint() const;
  void read_body();
  void read_rest();
  void on_rest(const Code& error, size_t bytes);
  void on_chunks(const Code& error);
  bool has_room_for_body(size_t bytes);
  void count_body(size_t bytes);
  void hand_over();
  void handle(const std::shared_ptr<Turn>& turn);
  void watch(std::weak_ptr<Turn> turn);
  void on_end_of_input(const std::shared_ptr<Turn>& turn);
  void look_whether_there(std::weak_ptr<Turn> turn, std::chrono::milliseconds interval);
  void refuse(const Complaint& wrong);
  void refuse(Reply reply);
  bool hold_for_client(size_t bytes);
  bool takes_bytes();
  void enqueue(std::string bytes);
  void write_next();
  void write_now();
  void on_written(const Code& error, size_t bytes);
  void farewell();
  void discard();
  bool is_current(const Exchange* turn) const { return current_.lock().get() == turn; }
  bool accepts_answer(const Exchange* turn) const {
    return !closing_ && !ends_ && (!turn || is_current(turn));
  }
  // For the client to send the rest: less while the program ends.
  void give_time(std::chrono::milliseconds limit) {
    stream_.expires_after(server_->draining ? std::min(limit, kFarewell) : limit);
  }

  std::shared_ptr<Server::State> server_;
  boost::beast::tcp_stream stream_;
  boost::asio::steady_timer later_;  // one use at a time: a pause of reading, or a look
  boost::asio::steady_timer write_later_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  std::unique_ptr<ConnectionTable::Place> place_;  // until it is closed
  Pace pace_;                                      // of the request that is being read
  Pace write_pace_;                                // of its answer: incomplete writes
  Next next_ = nullptr;                            // what read_more() calls
  Request request_;
  size_t received_ = 0;  // bytes of request_.body, if its length was announced
  const Peer peer_;
  std::string client_;  // who sent the request: with proxies another than the peer
  std::weak_ptr<Turn> current_;
  std::deque<std::string> waiting_;  // parts of the answer; the first is being written
  size_t held_ = 0;                  // bytes in waiting_
  size_t written_ = 0;               // bytes of the first of them
  bool fresh_ = true, keep_alive_ = false, head_only_ = false, ends_ = false, closing_ = false;
  unsigned version_ = 11;
  size_t body_ = 0;  // bytes that count among those of all bodies
  size_t framing_ = 0, discarded_ = 0;
};

}  // namespace fovea

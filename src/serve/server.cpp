#include "serve/server.h"

#include <malloc.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "serve/client_address.h"
#include "serve/connection.h"

namespace fovea {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Code = Server::State::Code;

constexpr std::chrono::milliseconds kNoDescriptors{100};  // before the next try to accept
constexpr size_t kMuchMemory = 16 << 20;

asio::ip::address address_of(const std::string& host, Code& error) {
  return asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
}

// Tells a client that has too many connections, if its socket takes that at once.
void refuse(Tcp::socket socket) {
  const Reply reply{.status = 429,
                    .body = R"({"error":"Slowdown: too many connections"})",
                    .headers = {{"Retry-After", "1"}}};
  Code ignored;
  socket.non_blocking(true, ignored);
  socket.send(asio::buffer(whole_head_of(reply, Connected::close) + reply.body), 0, ignored);
  socket.shutdown(Tcp::socket::shutdown_send, ignored);
}

}  // namespace

std::vector<std::string> default_hosts(const std::string& host) {
  Code error;
  const auto address = address_of(host, error);
  if (error || !address.is_loopback()) return {};
  return {"localhost", "127.0.0.1", "::1", lower(host)};
}

Server::State::State(ServerOptions o, Handler h)
    : options(std::move(o)), handler(std::move(h)),
      table(
          {options.max_connections, options.proxies > 0 ? 0 : options.max_connections_per_client}),
      bodies({options.max_bodies, options.max_bodies / 4}),
      answers({options.max_answers, options.max_answers / 4}) {}

void Server::State::listen() {
  Code error;
  const auto address = address_of(options.host, error);
  check(!error, Exit::usage, "--host: '", options.host,
        "' is not an address; for example 127.0.0.1, or 0.0.0.0 for all of this machine");
  const Tcp::endpoint endpoint(address, static_cast<uint16_t>(options.port));
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(1024, error);
  if (!error) acceptor.non_blocking(true, error);
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
  if (accepting || !acceptor.is_open() || !table.can_admit()) return;
  accepting = true;
  acceptor.async_wait(Tcp::acceptor::wait_read, [self = shared_from_this()](const Code& error) {
    self->on_connection(error);
  });
}

// Whether there is room is known only now: it may have gone while nobody came.
void Server::State::on_connection(Code error) {
  accepting = false;
  if (error == asio::error::operation_aborted || !table.can_admit()) return;
  Tcp::socket socket(io);
  if (!error) acceptor.accept(socket, error);
  if (!error) admit(std::move(socket));
  if (!error || error == asio::error::would_block) return accept();
  if (error == asio::error::no_descriptors && table.evict_any()) return accept();
  accepting = true;  // after a pause: all connections are being served
  pause.expires_after(kNoDescriptors);
  pause.async_wait([self = shared_from_this()](const Code& failed) {
    self->accepting = false;
    if (!failed) self->accept();
  });
}

void Server::State::admit(Tcp::socket socket) {
  Code error;
  std::string address = socket.remote_endpoint(error).address().to_string();
  if (error) return;  // the client has left
  std::string client = client_group(address);
  if (!table.make_room(client)) {
    refused(429);
    return refuse(std::move(socket));
  }
  std::make_shared<Connection>(shared_from_this(), std::move(socket),
                               Connection::Peer{std::move(address), std::move(client)})
      ->wait_for_request();
}

void Server::State::leave(Connection* connection) {
  connections.erase(connection);
  count = connections.size();
  if (!draining) asio::post(io, [self = shared_from_this()] { self->accept(); });
}

void Server::State::drain() {
  if (draining) return;
  draining = true;
  Code ignored;
  for (Code none; !none;) {  // those who came before the signal are told that they came too late
    Tcp::socket socket(io);
    acceptor.accept(socket, none);
    if (!none) admit(std::move(socket));
  }
  acceptor.close(ignored);
  close_unasked(Unasked::idle);
  pause.expires_after(kFarewell);
  pause.async_wait([self = shared_from_this()](const Code&) { self->close_unasked(Unasked::all); });
}

void Server::State::close_unasked(Unasked clients) {
  for (Connection* each : std::vector(connections.begin(), connections.end()))
    each->close_if_unasked(clients);
}

void Server::State::cut() {
  for (Connection* each : std::vector(connections.begin(), connections.end())) each->close();
}

// The memory of many large bodies goes back to the system when they are gone: after this handler,
// which still holds the last of them. That takes long, so that a thread of large requests does it.
void Server::State::count_body(const std::string& client, size_t before, size_t now) {
  bodies.change(client, before, now);
  most_bodies = std::max(most_bodies, bodies.all());
  if (bodies.all() > 0 || most_bodies < kMuchMemory) return;
  most_bodies = 0;
  asio::post(io, [self = shared_from_this()] { self->pool->add("", [] { malloc_trim(0); }); });
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
  state_->pool->stop();
  asio::post(state_->io, [state = state_] { state->close(); });
  state_->thread.join();
}

int Server::port() const { return state_->port; }
size_t Server::connections() const { return state_->count; }

void Server::start() {
  asio::post(state_->io, [state = state_] { state->accept(); });
  state_->pool.emplace(state_->options.handler_threads, state_->options.max_connections);
  state_->thread = std::thread([state = state_.get()] {
    pthread_setname_np(pthread_self(), "connections");
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

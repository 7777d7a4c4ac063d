#include "http/server.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/check.h"
#include "base/log.h"
#include "http/client_address.h"
#include "http/connection.h"

namespace fovea {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Code = HttpServer::State::Code;

constexpr std::chrono::milliseconds kNoDescriptors{100};  // before the next attempt to accept
constexpr std::chrono::nanoseconds kSlice{100'000};       // the shortest slice that Linux accepts
constexpr size_t kMuchMemory = 16 << 20;

// struct sched_attr of sched_setattr(2), which the headers of Debian 12 do not declare.
struct SchedulerAttributes {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t slice, deadline, period;
};

// Asks the scheduler of Linux 6.12 or later to run this thread soon after it wakes, although the
// translation threads use all cores. Earlier versions ignore this. The share of the processor that
// the thread gets stays the same.
void request_short_slices() {
  SchedulerAttributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.slice = kSlice.count();
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

asio::ip::address address_of(const std::string& host, Code& error) {
  return asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
}

// Sends 429 to a client with too many connections, if its socket accepts the bytes without
// blocking.
void refuse(Tcp::socket socket) {
  const HttpReply reply{.status = 429,
                        .body = R"({"error":"Slowdown: too many connections"})",
                        .headers = {{"Retry-After", "1"}}};
  Code ignored;
  socket.non_blocking(true, ignored);
  socket.send(asio::buffer(whole_head_of(reply, ConnectionReuse::close) + reply.body), 0, ignored);
  socket.shutdown(Tcp::socket::shutdown_send, ignored);
}

}  // namespace

std::vector<std::string> default_hosts(const std::string& host) {
  Code error;
  const auto address = address_of(host, error);
  if (error || !address.is_loopback()) return {};
  return {"localhost", "127.0.0.1", "::1", lower_ascii(host)};
}

HttpServer::State::State(ServerOptions o, HttpHandler h)
    : options(std::move(o)), handler(std::move(h)),
      table(
          {options.max_connections, options.proxies > 0 ? 0 : options.max_connections_per_client}),
      bodies({options.max_bodies, options.max_bodies / 4}),
      answers({options.max_answers, options.max_answers / 4}) {}

void HttpServer::State::listen() {
  Code error;
  const auto address = address_of(options.host, error);
  check(!error, ExitCode::usage, "`host`: '", options.host,
        "' is not an address; use for example 127.0.0.1, or 0.0.0.0 for all interfaces");
  const Tcp::endpoint endpoint(address, static_cast<uint16_t>(options.port));
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(1024, error);
  if (!error) acceptor.non_blocking(true, error);
  if (!error) port = acceptor.local_endpoint(error).port();
  if (!error) return;
  const std::string where = options.host + ":" + std::to_string(options.port);
  check(error != asio::error::address_in_use, ExitCode::usage, where,
        " is in use by another program; ",
        "choose another `port`, or stop that program ('ss -ltnp' lists it)");
  check(error != asio::error::access_denied, ExitCode::usage, where,
        ": only root may use ports below 1024; choose another `port`");
  fail(ExitCode::usage, where, ": cannot listen: ", error.message());
}

void HttpServer::State::accept() {
  if (accepting || !acceptor.is_open() || !table.can_admit()) return;
  accepting = true;
  acceptor.async_wait(Tcp::acceptor::wait_read, [self = shared_from_this()](const Code& error) {
    self->on_connection(error);
  });
}

// Handles a new connection. Checks the limit again, because the table may have become full while
// the server waited for a connection.
void HttpServer::State::on_connection(Code error) {
  accepting = false;
  if (error == asio::error::operation_aborted || !table.can_admit()) return;
  Tcp::socket socket(io);
  if (!error) acceptor.accept(socket, error);
  if (!error) admit(std::move(socket));
  if (!error || error == asio::error::would_block) return accept();
  if (error == asio::error::no_descriptors && table.evict_any()) return accept();
  accepting = true;  // tries again after a pause: all connections are busy
  pause.expires_after(kNoDescriptors);
  pause.async_wait([self = shared_from_this()](const Code& failed) {
    self->accepting = false;
    if (!failed) self->accept();
  });
}

void HttpServer::State::admit(Tcp::socket socket) {
  Code error;
  std::string address = socket.remote_endpoint(error).address().to_string();
  if (error) return;  // the client has left
  std::string client = client_group(address);
  if (!table.make_space(client)) {
    refused(429);
    return refuse(std::move(socket));
  }
  std::make_shared<Connection>(shared_from_this(), std::move(socket),
                               Connection::Peer{std::move(address), std::move(client)})
      ->wait_for_request();
}

void HttpServer::State::leave(Connection* connection) {
  connections.erase(connection);
  count = connections.size();
  if (!draining) asio::post(io, [self = shared_from_this()] { self->accept(); });
}

void HttpServer::State::drain() {
  if (draining) return;
  draining = true;
  Code ignored;
  for (Code none; !none;) {  // connections from before the signal get status 503
    Tcp::socket socket(io);
    acceptor.accept(socket, none);
    if (!none) admit(std::move(socket));
  }
  acceptor.close(ignored);
  close_waiting(WaitingClients::idle);
  pause.expires_after(kCloseTimeout);
  pause.async_wait(
      [self = shared_from_this()](const Code&) { self->close_waiting(WaitingClients::all); });
}

void HttpServer::State::close_waiting(WaitingClients clients) {
  for (Connection* each : std::vector(connections.begin(), connections.end()))
    each->close_if_waiting(clients);
}

void HttpServer::State::cut() {
  for (Connection* each : std::vector(connections.begin(), connections.end())) each->close();
}

// Counts a change of the bytes of a body. When the last large body is released, returns its memory
// to the system. This takes long, so a thread of the handler pool does it, after the current
// handler, which still holds the last body.
void HttpServer::State::count_body(const std::string& client, size_t before, size_t now) {
  bodies.change(client, before, now);
  most_bodies = std::max(most_bodies, bodies.all());
  if (bodies.all() > 0 || most_bodies < kMuchMemory) return;
  most_bodies = 0;
  asio::post(io, [self = shared_from_this()] { self->pool->add("", [] { malloc_trim(0); }); });
}

void HttpServer::State::close() {
  drain();
  if (signals) signals->cancel();
  pause.cancel();
  cut();
  work.reset();
}

HttpServer::HttpServer(const ServerOptions& options, HttpHandler handler)
    : state_(std::make_shared<State>(options, std::move(handler))) {
  state_->listen();
}

// Connections, their handlers and the state own each other. close() ends them all, so that the I/O
// thread has no more work and returns.
void HttpServer::stop() {
  if (!state_->thread.joinable()) return;
  state_->pool->stop();
  asio::post(state_->io, [state = state_] { state->close(); });
  state_->thread.join();
}

int HttpServer::port() const { return state_->port; }
size_t HttpServer::connections() const { return state_->count; }

void HttpServer::start() {
  asio::post(state_->io, [state = state_] { state->accept(); });
  state_->pool.emplace(state_->options.handler_threads, state_->options.max_connections);
  state_->thread = std::thread([state = state_.get()] {
    pthread_setname_np(pthread_self(), "connections");
    request_short_slices();
    while (!state->io.stopped()) {
      try {
        state->io.run();
      } catch (const std::exception& error) {
        log_error("a connection failed: {}", error.what());
      }
    }
  });
}

void HttpServer::on_signal(std::function<void(int)> act) {
  state_->signals.emplace(state_->io, SIGINT, SIGTERM, SIGHUP);
  struct SignalWait {
    std::shared_ptr<State> state;
    std::function<void(int)> act;
    void operator()(const Code& error, int signal) {
      if (error) return;
      act(signal);
      state->signals->async_wait(SignalWait{*this});
    }
  };
  state_->signals->async_wait(SignalWait{state_, std::move(act)});
}

void HttpServer::drain() {
  asio::post(state_->io, [state = state_] { state->drain(); });
}

void HttpServer::cut() {
  asio::post(state_->io, [state = state_] { state->cut(); });
}

}  // namespace fovea

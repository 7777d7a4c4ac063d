#include "serve/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/core/read_size.hpp>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "serve/client_address.h"

namespace fovea {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr size_t kFarewellBytes = 1 << 20;
// Bytes at a time: between them others are served. Chunks are parsed, other bodies are not.
constexpr size_t kRead = 16 << 10, kReadUnparsed = 64 << 10, kWrite = 256 << 10;
constexpr size_t kSmallBody = 64 << 10;  // does not count, so that large ones do not exclude it
constexpr size_t kCopied = 64 << 10;     // of an answer: more is a write of its own
constexpr std::chrono::milliseconds kLookAgain{1'000};  // for a client that sends no more
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

// Note [Time of the server's thread]
// One thread serves all connections. It may spend 5 ms of processor time on a request, and far
// less in one go: between two parts of a body, of a header or of an answer it serves others.
// A body of 4 MiB with a length: 64 reads of 64 KiB, some 5 µs each, and two passes over the bytes,
// one that makes room and one in which the system copies them there: 1.5 ms.
// A body in chunks: 256 reads of 16 KiB and a pass more, since the parser copies it. Room is made
// in steps of 64 times the size, so that its bytes move once: 2 ms.
// A client that sends small parts would make us read for each: Pace bounds the reads of a request.
// Large requests are handled elsewhere (HandlerPool), and parts of a stream are written together.
// Keys, places of connections and limits are found in time that does not grow with their number.
// `io_time_test.cpp` measures all of this.

// What is wrong with the bytes of a request. Status 0: the client is gone, or too late.
Complaint complaint_of(const Connection::Code& error) {
  if (error == http::error::header_limit) return {431, "the header is too large"};
  if (error == http::error::body_limit) return {413, "Payload Too Large"};
  if (error == http::error::buffer_overflow)  // of a connection; a header has its own limit
    return {413, "a chunk extension or the trailer is too large"};
  if (error == http::error::bad_version) return {505, "HTTP/1.1 is spoken here"};
  if (error == http::error::end_of_stream || error == http::error::partial_message) return {};
  const bool spoken = error.category() == Connection::Code(http::error::bad_method).category();
  return spoken ? Complaint{400, "this is not an HTTP request"} : Complaint{};
}

Reply too_many(const char* what) {
  return {.status = 503,
          .body = std::string(R"({"error":"Too many )") + what + R"("})",
          .headers = {{"Retry-After", "5"}}};
}

// Calls the handler for a request unless its client has left.
void call_handler(const Server::State& server, Request request, const std::shared_ptr<Turn>& turn) {
  if (turn->gone()) return server.refused(499);
  try {
    server.handler(std::move(request), turn);
  } catch (const std::exception& error) {
    log_error("a request failed: {}", error.what());
    turn->answer(failed_reply());
  }
}

}  // namespace

Connection::Connection(std::shared_ptr<Server::State> server, Tcp::socket socket, Peer peer)
    : server_(std::move(server)), stream_(std::move(socket)), later_(server_->io),
      write_later_(server_->io), buffer_(server_->options.max_buffer()), peer_(std::move(peer)),
      client_(peer_.client) {
  Code ignored;
  stream_.socket().set_option(Tcp::no_delay(true), ignored);
  server_->connections.insert(this);
  server_->count = server_->connections.size();
  place_ = server_->table.add(peer_.client, [this] { close(); });
}

Connection::~Connection() {
  count_body(0);
  server_->answers.change(client_, held_, 0);
  place_.reset();
  server_->leave(this);
}

// A stage may have room for another connection.
void Connection::enter(Stage stage) {
  if (place_) place_->enter(stage);
  server_->accept();
}

// The first bytes may be long in coming, the rest of the header may not.
void Connection::wait_for_request() {
  if (server_->draining && !fresh_) return close();
  enter(Stage::idle);
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

// A client that has just connected may be about to ask: it is given time to learn that it is late.
void Connection::close_if_unasked(Server::State::Unasked clients) {
  if (!place_) return;
  Code ignored;
  const bool all = clients == Server::State::Unasked::all;
  const bool idle = place_->stage() == Stage::idle && stream_.socket().available(ignored) == 0;
  if ((idle && (all || !fresh_)) || (all && place_->stage() == Stage::reading)) close();
}

// Calls `act` when the client may have the next read or write.
void Connection::when_due(asio::steady_timer& timer, const Pace& pace, void (Connection::*act)()) {
  const auto wait = pace.wait();
  if (wait.count() == 0) return (this->*act)();
  timer.expires_after(wait);
  timer.async_wait([self = shared_from_this(), act](const Code& error) {
    if (!error) (self.get()->*act)();
  });
}

// Reads what has come, which is more than nothing unless there is an error, and calls `next`.
void Connection::read_more(Next next) {
  next_ = next;
  when_due(later_, pace_, &Connection::read_now);
}

void Connection::read_now() {
  const size_t room = boost::beast::read_size(buffer_, kRead);
  if (room == 0) return (this->*next_)(http::error::buffer_overflow);
  stream_.async_read_some(buffer_.prepare(room),
                          [self = shared_from_this()](const Code& error, size_t bytes) {
                            self->buffer_.commit(bytes);
                            self->pace_.count(bytes);
                            (self.get()->*self->next_)(error);
                          });
}

void Connection::read_header() {
  enter(Stage::reading);
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
  if (error) return refuse(complaint_of(error));
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
    request_.headers.emplace_back(lower(std::string(field.name_string())), field.value());
  request_.address = peer_.address;
  if (server_->options.proxies > 0)
    client_ = client_group(request_.client(server_->options.proxies));
}

Complaint Connection::complaint() const {
  const ServerOptions& options = server_->options;
  const Complaint wrong = fovea::complaint_of(request_, version_);
  if (wrong.status != 0) return wrong;
  if (!options.hosts.empty() && request_.count("host") > 0 &&
      std::ranges::find(options.hosts, host_name(request_.header("host"))) == options.hosts.end())
    return {421, "the Host header names another server; see 'fovea serve --allow-host'"};
  if (parser_->content_length().value_or(0) > options.max_body) return {413, "Payload Too Large"};
  return {};
}

void Connection::on_header(const Code& error) {
  if (error) return refuse(complaint_of(error));
  read_head();
  if (const Complaint wrong = complaint(); wrong.status != 0) return refuse(wrong);
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

// In parts: bytes count as they come, not as they are announced.
void Connection::read_body() {
  if (parser_->is_done()) return hand_over();
  if (parser_->chunked()) return on_chunks({});
  const size_t length = *parser_->content_length();
  received_ = std::min(length, buffer_.size());
  request_.body.reserve(length);  // takes no memory before bytes are there
  request_.body.assign(static_cast<const char*>(buffer_.data().data()), received_);
  buffer_.consume(received_);
  if (has_room_for_body(received_)) when_due(later_, pace_, &Connection::read_rest);
}

// Of a body whose length is known: straight into its place.
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
  if (error) return refuse(complaint_of(error));
  pace_.count(bytes);
  received_ += bytes;
  if (has_room_for_body(received_)) when_due(later_, pace_, &Connection::read_rest);
}

void Connection::on_chunks(const Code& error) {
  if (error) return refuse(complaint_of(error));
  std::string& body = parser_->get().body();
  if (body.size() > kSmallBody && body.capacity() < body.size() + kRead)
    body.reserve(std::min(server_->options.max_body, 64 * body.size()));
  Code parsed;
  const size_t used = buffer_.size() > 0 ? parser_->put(buffer_.data(), parsed) : 0;
  buffer_.consume(used);
  framing_ += used;
  if (parsed && parsed != http::error::need_more) return refuse(complaint_of(parsed));
  if (framing_ > body.size() + server_->options.max_framing)
    return refuse(Complaint{413, "the framing of the chunks is too large"});
  if (!has_room_for_body(body.size())) return;
  if (!parser_->is_done()) {
    buffer_.reserve(std::min(kRead, buffer_.max_size()));
    return read_more(&Connection::on_chunks);
  }
  request_.body = std::move(body);
  hand_over();
}

// Refuses the request if it has none.
bool Connection::has_room_for_body(size_t bytes) {
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
  const auto turn = std::make_shared<Turn>(shared_from_this());
  current_ = turn;
  fresh_ = false;
  enter(Stage::working);
  if (!server_->draining) {
    watch(turn);
    return handle(turn);
  }
  count_body(0);
  server_->refused(503);
  turn->answer({.status = 503, .body = R"({"error":"The server is shutting down"})"});
}

// The time for a handler grows with the request: those of large ones have threads of their own.
void Connection::handle(const std::shared_ptr<Turn>& turn) {
  const ServerOptions& options = server_->options;
  const bool costly = options.costly && options.costly(request_);
  if (!costly && request_.body.size() + request_.query.size() <= options.small_request)
    return call_handler(*server_, std::move(request_), turn);
  const bool added = server_->pool->add(
      client_,
      [server = server_.get(), turn, request = std::make_shared<Request>(std::move(request_))] {
        call_handler(*server, std::move(*request), turn);
        turn->release_body();
      });
  if (added) return;
  count_body(0);
  server_->refused(503);
  turn->answer(too_many("large requests are waiting"));
}

// Finds out whether the client leaves. If it sends its next request early, the connection is not
// read before the answer is written.
void Connection::watch(std::weak_ptr<Turn> turn) {
  stream_.socket().async_wait(
      Tcp::socket::wait_read, [self = shared_from_this(), turn](const Code& error) {
        const auto held = turn.lock();
        if (error || !held || !self->is_current(held.get())) return;
        char byte;
        const auto got =
            recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (got > 0) return;
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return self->watch(turn);
        if (got < 0 || self->version_ == 10 || held->begun()) return held->leave();
        self->on_end_of_input(held);
      });
}

// Note [End of input]
// A client that ended its side of the connection has left, or waits for its answer: TCP does not
// tell. Its system answers further bytes with a reset if the client has closed its socket. So the
// server sends `100 Continue`, which HTTP/1.1 allows before every answer: at once, because most
// clients that end their side have left, and then after intervals that double, because a client
// that leaves later sends nothing. Work for a client that left at most doubles that way. TCP
// keep-alive probes cannot replace this: Linux acknowledges them for a minute after the client
// has closed its socket.
void Connection::on_end_of_input(const std::shared_ptr<Turn>& turn) {
  stream_.socket().async_wait(Tcp::socket::wait_error,
                              [turn = std::weak_ptr(turn)](const Code& failed) {
                                const auto asked = turn.lock();
                                if (!failed && asked) asked->leave();
                              });
  look_whether_there(turn, kLookAgain);
}

void Connection::look_whether_there(std::weak_ptr<Turn> turn, std::chrono::milliseconds interval) {
  const auto held = turn.lock();
  if (!held || !is_current(held.get()) || held->begun()) return;
  write(held.get(), std::string(kContinue), Part::more);
  later_.expires_after(interval);
  later_.async_wait([self = shared_from_this(), turn, interval](const Code& error) {
    if (!error) self->look_whether_there(turn, 2 * interval);
  });
}

void Connection::refuse(const Complaint& wrong) {
  if (wrong.status == 0) return close();
  refuse(Reply{wrong.status, std::string(R"({"error":")") + wrong.text + R"("})"});
}

void Connection::refuse(Reply reply) {
  server_->refused(reply.status);
  parser_.reset();
  { const Request refused = std::move(request_); }  // an assignment alone would keep its memory
  request_ = {};
  count_body(0);
  keep_alive_ = false;
  answer(nullptr, std::move(reply));
}

// False if all that waits for clients to read, or for this client, would be too much.
bool Connection::hold_for_client(size_t bytes) {
  server_->answers.change(client_, held_, held_ + bytes);
  if (server_->answers.allows(client_, held_ + bytes)) {
    held_ += bytes;
    return true;
  }
  server_->answers.change(client_, held_ + bytes, held_);
  return false;
}

// Parts that come while others are being written are written together.
void Connection::enqueue(std::string bytes) {
  if (waiting_.size() > 1 && waiting_.back().size() + bytes.size() <= kCopied)
    waiting_.back() += bytes;
  else
    waiting_.push_back(std::move(bytes));
  if (waiting_.size() == 1) write_next();
}

void Connection::answer(const Exchange* turn, Reply reply) {
  if (!accepts_answer(turn)) return;
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

// If not, the client has not read what was written. Else it is this thread that is behind.
bool Connection::takes_bytes() {
  pollfd socket{.fd = stream_.socket().native_handle(), .events = POLLOUT, .revents = 0};
  return poll(&socket, 1, 0) == 1 && (socket.revents & POLLOUT);
}

void Connection::write(const Exchange* turn, std::string bytes, Part part) {
  if (!accepts_answer(turn)) return;
  const bool much = part == Part::more && held_ > server_->options.max_backlog;
  if ((much && !takes_bytes()) || !hold_for_client(bytes.size())) return close();
  ends_ = part == Part::last;
  enqueue(std::move(bytes));
}

void Connection::write_next() {
  enter(Stage::writing);
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

// A client with a small receive window takes an answer in small parts. Between them the pace gives
// it time to take more at once.
void Connection::on_written(const Code& error, size_t bytes) {
  if (error) return close();
  const size_t written = waiting_.front().size();
  const bool incomplete = bytes < std::min(kWrite, written - written_);
  written_ += bytes;
  if (incomplete) write_pace_.count(bytes);
  if (written_ < written) return when_due(write_later_, write_pace_, &Connection::write_now);
  waiting_.pop_front();
  server_->answers.change(client_, held_, held_ - written);
  held_ -= written;
  if (!waiting_.empty()) return write_next();
  stream_.expires_never();
  if (!ends_) return enter(Stage::working);
  current_.reset();
  count_body(0);
  after_answer() == Connected::keep_alive ? wait_for_request() : farewell();
}

// Closing at once while the client still sends would take the answer away from it.
void Connection::farewell() {
  Code ignored;
  if (!closing_) stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
  if (!closing_) stream_.expires_after(kFarewell);
  closing_ = true;
  when_due(later_, pace_, &Connection::discard);
}

void Connection::discard() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(std::min(kRead, buffer_.max_size())),
                          [self = shared_from_this()](const Code& error, size_t bytes) {
                            self->discarded_ += bytes;
                            self->pace_.count(bytes);
                            const bool enough = self->discarded_ > kFarewellBytes;
                            error || enough ? self->close() : self->farewell();
                          });
}

void Connection::close() {
  closing_ = true;
  place_.reset();
  if (const auto turn = current_.lock()) turn->leave();
  later_.cancel();
  write_later_.cancel();
  Code ignored;
  stream_.socket().shutdown(Tcp::socket::shutdown_both, ignored);
  stream_.close();
}

}  // namespace fovea

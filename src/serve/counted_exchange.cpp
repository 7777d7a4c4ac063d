#include "serve/counted_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/ascii.h"
#include "base/log_fields.h"
#include "serve/file_store.h"

namespace fovea {
namespace {

constexpr const char* kIdHeader = "X-Request-Id";
constexpr size_t kLongestId = 64;

bool fits_into_id(char c) { return is_ascii_alnum(c) || c == '-' || c == '_' || c == '.'; }

}  // namespace

std::string request_id(const HttpRequest& request) {
  const std::string_view given = request.header("x-request-id");
  const bool valid =
      !given.empty() && given.size() <= kLongestId && std::ranges::all_of(given, fits_into_id);
  return valid ? std::string(given) : random_id();
}

CountedExchange::CountedExchange(std::shared_ptr<HttpExchange> inner, ServiceMetrics& metrics,
                                 RequestNote note)
    : inner_(std::move(inner)), metrics_(metrics), note_(std::move(note)) {
  ++metrics_.in_flight;
}

void CountedExchange::answer(HttpReply reply) {
  sent_ = reply.body.size();
  end_with(reply.status);
  reply.headers.emplace_back(kIdHeader, note_.id);
  inner_->answer(std::move(reply));
}

void CountedExchange::begin(HttpReply head) {
  head.headers.emplace_back(kIdHeader, note_.id);
  inner_->begin(std::move(head));
}

void CountedExchange::send(std::string part) {
  sent_ += part.size();
  inner_->send(std::move(part));
}

void CountedExchange::end() {
  end_with(200);
  inner_->end();
}

void CountedExchange::end_with(int status) {
  if (ended_.exchange(true)) return;
  --metrics_.in_flight;
  const std::chrono::duration<double> seconds = Clock::now() - begin_;
  metrics_.answered(note_.endpoint, model_, status, seconds.count());
  if (note_.logged) write_line(status, seconds.count());
}

void CountedExchange::write_line(int status, double seconds) const {
  std::vector<LogField> fields{{"request_id", note_.id},
                               {"method", note_.method},
                               {"path", note_.path},
                               {"status", int64_t{status}},
                               {"bytes_in", static_cast<int64_t>(note_.bytes)},
                               {"bytes_out", static_cast<int64_t>(sent_)},
                               {"duration_ms", std::round(seconds * 1e4) / 10}};
  if (!model_.empty()) fields.push_back({"model", model_});
  log_event("request", fields,
            fmt::format("{} {} {}, {} bytes in, {} out, {:.1f} ms, {}", note_.method, note_.path,
                        status, note_.bytes, sent_, 1000 * seconds, note_.id));
}

}  // namespace fovea

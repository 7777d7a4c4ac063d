#pragma once

#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fovea {

// At most so many requests in any minute for each client, by a bucket that fills evenly. Clients
// that were not seen for long are forgotten, so that memory is bounded.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  // Nothing where the client may go on, else the seconds after which it may. No limit: 0 a minute.
  std::optional<double> ask(const std::string& client, int64_t per_minute, Clock::time_point now);
  size_t clients() const { return buckets_.size(); }

 private:
  static constexpr size_t kMostClients = 10'000;
  struct Bucket {
    double tokens;
    Clock::time_point filled;
    std::list<std::string>::iterator place;
  };
  std::unordered_map<std::string, Bucket> buckets_;
  std::list<std::string> recent_;  // the client seen last first
};

// A key that clients may use, and how often in a minute; 0: as often as they like.
struct ApiKey {
  std::string key;
  int64_t per_minute = 0;
};

class ApiKeys {
 public:
  static constexpr size_t kLongest = 256;

  // Lines of a key and, after a blank, its requests per minute; a word that begins with # begins a
  // comment. `otherwise` is the limit of keys without one. Exit::data where a line is not that.
  static ApiKeys parse(std::string_view text, const std::string& name, int64_t otherwise);

  // Takes as long for a wrong key as for a right one.
  const ApiKey* find(std::string_view key) const;
  bool empty() const { return keys_.empty(); }

 private:
  std::vector<ApiKey> keys_;
};

}  // namespace fovea

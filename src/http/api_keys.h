#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/sip_hash.h"

namespace fovea {

// A limiter of the requests per minute, with a token bucket per client. A client may send the
// requests of a whole minute at once. The table of clients has a maximum size: the limiter drops
// the clients that were inactive longest. Thread-safe.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  // Counts a request. Returns nullopt if it may proceed, else the seconds until one may proceed.
  // `per_minute` 0: no limit.
  std::optional<double> take(const std::string& client, int64_t per_minute, Clock::time_point now);
  // Returns the result of take() without counting a request.
  std::optional<double> wait(const std::string& client, int64_t per_minute,
                             Clock::time_point now) const;
  size_t clients() const;

 private:
  static constexpr size_t kMostClients = 10'000;
  struct Bucket {
    double tokens;
    Clock::time_point filled;
    std::list<std::string>::iterator place;

    double tokens_at(Clock::time_point now, double limit) const;
  };
  Bucket& bucket_of(const std::string& client, double limit, Clock::time_point now);

  mutable std::mutex mutex_;
  std::unordered_map<std::string, Bucket> buckets_;
  std::list<std::string> recent_;  // the most recent client first
};

// A guard that slows down clients that guess API keys. After kGuesses wrong keys from an address in
// a minute, the service looks up no key from this address until the token bucket of the address has
// a token. Keys that were accepted from this address before are exempt. So guesses are slow, and a
// client with a valid key keeps working. Thread-safe.
class KeyGuard {
 public:
  using Clock = RateLimiter::Clock;
  static constexpr int64_t kGuesses = 10;

  // Returns nullopt if the key may be looked up, else the seconds until it may.
  std::optional<double> wait(const std::string& address, const std::string& key,
                             Clock::time_point now) const;
  void accept(const std::string& address, const std::string& key);
  void reject(const std::string& address, Clock::time_point now);
  size_t known() const;  // number of pairs of address and accepted key

 private:
  static constexpr size_t kMostKnown = 10'000;
  RateLimiter rejected_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::list<std::string>::iterator> known_;
  std::list<std::string> recent_;  // the most recent pair first
};

// An API key and its limit of requests per minute; 0: no limit.
struct ApiKey {
  std::string key;
  int64_t per_minute = 0;
};

// A table of API keys. Reads are thread-safe.
class ApiKeys {
 public:
  static constexpr size_t kLongest = 256;

  // Parses lines of the form "KEY [REQUESTS_PER_MINUTE]". A word that begins with # begins a
  // comment. Keys without a limit get `default_limit`. `name` is the file name for errors. Throws
  // ExitCode::data if a line has another form.
  static ApiKeys parse(std::string_view text, const std::string& name, int64_t default_limit);

  // Returns the key with its limit, or null. Takes constant time, for valid and for wrong keys:
  // Note [Looking up keys]. If several lines have the same key, the last one counts.
  const ApiKey* find(std::string_view key) const;
  bool empty() const { return keys_.empty(); }

 private:
  // Note [Looking up keys]
  using Secret = std::array<uint64_t, 2>;
  void add(ApiKey key);

  Secret secret_{};
  std::vector<ApiKey> keys_;
  std::unordered_multimap<uint64_t, size_t> indices_;  // indices in keys_, by tag
};

}  // namespace fovea

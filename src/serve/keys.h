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

namespace fovea {

// A token bucket per client: at most so many requests in a minute, with bursts of as many. The
// table is bounded: it forgets the clients that it has not seen for the longest time. Thread-safe.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  // Counts a request. Nothing if it may proceed, else the seconds until one may. 0 per minute means
  // no limit.
  std::optional<double> ask(const std::string& client, int64_t per_minute, Clock::time_point now);
  // The same without counting.
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
  std::list<std::string> recent_;  // the client seen last first
};

// Slows down clients that guess API keys. After kGuesses wrong keys from an address in a minute, no
// key from there is looked up until a token of its bucket is free, except keys that were accepted
// from there before. So guesses are slow, and a client with a good key keeps working. Thread-safe.
class KeyGuard {
 public:
  using Clock = RateLimiter::Clock;
  static constexpr int64_t kGuesses = 10;

  // Nothing if the key may be looked up, else the seconds until it may.
  std::optional<double> wait(const std::string& address, const std::string& key,
                             Clock::time_point now) const;
  void accept(const std::string& address, const std::string& key);
  void reject(const std::string& address, Clock::time_point now);
  size_t known() const;  // pairs of address and accepted key

 private:
  static constexpr size_t kMostKnown = 10'000;
  RateLimiter rejected_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::list<std::string>::iterator> known_;
  std::list<std::string> recent_;  // the pair seen last first
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

  // Takes as long for a wrong key as for a right one, however many keys there are. Where a key
  // stands in several lines, the last of them counts.
  const ApiKey* find(std::string_view key) const;
  bool empty() const { return keys_.empty(); }

 private:
  // Note [Looking up keys]
  using Secret = std::array<uint64_t, 2>;
  void add(ApiKey key);

  Secret secret_{};
  std::vector<ApiKey> keys_;
  std::unordered_multimap<uint64_t, size_t> places_;  // in keys_, by tag
};

// SipHash-2-4 of Aumasson and Bernstein: without the secret nobody can predict a tag.
uint64_t sip_hash(const std::array<uint64_t, 2>& secret, std::string_view text);

}  // namespace fovea

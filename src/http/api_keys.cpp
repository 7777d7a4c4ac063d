#include "http/api_keys.h"

#include <algorithm>
#include <charconv>

#include "base/ascii.h"
#include "base/check.h"
#include "base/lines.h"

namespace fovea {

double RateLimiter::Bucket::tokens_at(Clock::time_point now, double limit) const {
  const double seconds = std::chrono::duration<double>(now - filled).count();
  return std::min(limit, tokens + seconds * limit / 60);
}

RateLimiter::Bucket& RateLimiter::bucket_of(const std::string& client, double limit,
                                            Clock::time_point now) {
  auto found = buckets_.find(client);
  if (found == buckets_.end()) {
    if (buckets_.size() == kMostClients) {
      buckets_.erase(recent_.back());
      recent_.pop_back();
    }
    recent_.push_front(client);
    found = buckets_.emplace(client, Bucket{limit, now, recent_.begin()}).first;
  }
  recent_.splice(recent_.begin(), recent_, found->second.place);
  return found->second;
}

std::optional<double> RateLimiter::take(const std::string& client, int64_t per_minute,
                                        Clock::time_point now) {
  if (per_minute <= 0) return std::nullopt;
  const auto limit = static_cast<double>(per_minute);
  const std::lock_guard hold(mutex_);
  Bucket& bucket = bucket_of(client, limit, now);
  bucket.tokens = bucket.tokens_at(now, limit);
  bucket.filled = now;
  if (bucket.tokens < 1) return (1 - bucket.tokens) * 60 / limit;
  bucket.tokens -= 1;
  return std::nullopt;
}

std::optional<double> RateLimiter::wait(const std::string& client, int64_t per_minute,
                                        Clock::time_point now) const {
  const auto limit = static_cast<double>(per_minute);
  const std::lock_guard hold(mutex_);
  const auto found = buckets_.find(client);
  const double tokens = found == buckets_.end() ? limit : found->second.tokens_at(now, limit);
  if (per_minute <= 0 || tokens >= 1) return std::nullopt;
  return (1 - tokens) * 60 / limit;
}

size_t RateLimiter::clients() const {
  const std::lock_guard hold(mutex_);
  return buckets_.size();
}

namespace {

std::string pair_of(const std::string& address, const std::string& key) {
  return address + '\n' + key;
}

}  // namespace

std::optional<double> KeyGuard::wait(const std::string& address, const std::string& key,
                                     Clock::time_point now) const {
  const auto seconds = rejected_.wait(address, kGuesses, now);
  if (!seconds) return std::nullopt;
  const std::lock_guard hold(mutex_);
  return known_.contains(pair_of(address, key)) ? std::nullopt : seconds;
}

void KeyGuard::accept(const std::string& address, const std::string& key) {
  const std::string pair = pair_of(address, key);
  const std::lock_guard hold(mutex_);
  if (const auto found = known_.find(pair); found != known_.end())
    return recent_.splice(recent_.begin(), recent_, found->second);
  if (known_.size() == kMostKnown) {
    known_.erase(recent_.back());
    recent_.pop_back();
  }
  recent_.push_front(pair);
  known_.emplace(pair, recent_.begin());
}

void KeyGuard::reject(const std::string& address, Clock::time_point now) {
  rejected_.take(address, kGuesses, now);
}

size_t KeyGuard::known() const {
  const std::lock_guard hold(mutex_);
  return known_.size();
}

namespace {

// Compares two keys in constant time: it always reads kLongest bytes.
bool same_key(std::string_view a, std::string_view b) {
  unsigned char different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < ApiKeys::kLongest; ++i) {
    const char of_a = i < a.size() ? a[i] : '\0', of_b = i < b.size() ? b[i] : '\0';
    different = static_cast<unsigned char>(different | (of_a ^ of_b));
  }
  return different == 0;
}

}  // namespace

// Note [Looking up keys]
// The I/O thread looks up keys, so the time of a lookup must not depend on the number of keys.
// The time of a lookup in a table of keys would reveal how a guess is related to the keys. This
// table contains tags instead: hashes of the keys under a random secret that parse() draws. To
// clients that do not know the secret, the time of a lookup reveals nothing. If the table has the
// tag of a guess, the guess is compared with the key of this tag, otherwise with the first key.
// Both comparisons take the same time.
void ApiKeys::add(ApiKey key) {
  const uint64_t tag = sip_hash(secret_, key.key);
  const auto [first, last] = indices_.equal_range(tag);
  for (auto at = first; at != last; ++at)
    if (keys_[at->second].key == key.key) return void(keys_[at->second] = std::move(key));
  indices_.emplace(tag, keys_.size());
  keys_.push_back(std::move(key));
}

const ApiKey* ApiKeys::find(std::string_view key) const {
  if (key.size() > kLongest || keys_.empty()) return nullptr;
  const ApiKey* found = nullptr;
  const auto [first, last] = indices_.equal_range(sip_hash(secret_, key));
  if (first == last) return same_key(keys_.front().key, key) ? &keys_.front() : nullptr;
  for (auto at = first; at != last; ++at)
    if (same_key(keys_[at->second].key, key)) found = &keys_[at->second];
  return found;
}

ApiKeys ApiKeys::parse(std::string_view text, const std::string& name, int64_t default_limit) {
  ApiKeys keys;
  keys.secret_ = random_secret();
  LineReader reader = LineReader::over(text, name);
  for (TextLine line; reader.next(line);) {
    auto words = split_words(line.text);
    words.erase(std::ranges::find_if(words, [](auto word) { return word.starts_with('#'); }),
                words.end());
    if (words.empty()) continue;
    ApiKey key{std::string(words[0]), default_limit};
    check(key.key.size() <= kLongest, ExitCode::data, reader.where(), ": the key has ",
          key.key.size(), " characters, at most ", kLongest, " are allowed; use a shorter key");
    if (words.size() > 1) {
      const char* const end = words[1].data() + words[1].size();
      const auto [stop, error] = std::from_chars(words[1].data(), end, key.per_minute);
      check(error == std::errc() && stop == end && key.per_minute >= 0 && words.size() == 2,
            ExitCode::data, reader.where(),
            ": expected a key and its number of requests per minute, for example 'k3y 60'");
    }
    keys.add(std::move(key));
  }
  return keys;
}

}  // namespace fovea

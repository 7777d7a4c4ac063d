#include "serve/keys.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/lines.h"
#include "text/pieces.h"

namespace fovea {

std::optional<double> RateLimiter::ask(const std::string& client, int64_t per_minute,
                                       Clock::time_point now) {
  if (per_minute <= 0) return std::nullopt;
  const auto limit = static_cast<double>(per_minute);
  auto found = buckets_.find(client);
  if (found == buckets_.end()) {
    if (buckets_.size() == kMostClients) {
      buckets_.erase(recent_.back());
      recent_.pop_back();
    }
    recent_.push_front(client);
    found = buckets_.emplace(client, Bucket{limit, now, recent_.begin()}).first;
  }
  Bucket& bucket = found->second;
  recent_.splice(recent_.begin(), recent_, bucket.place);
  const double seconds = std::chrono::duration<double>(now - bucket.filled).count();
  bucket.tokens = std::min(limit, bucket.tokens + seconds * limit / 60);
  bucket.filled = now;
  if (bucket.tokens < 1) return (1 - bucket.tokens) * 60 / limit;
  bucket.tokens -= 1;
  return std::nullopt;
}

ApiKeys ApiKeys::parse(std::string_view text, const std::string& name, int64_t otherwise) {
  ApiKeys keys;
  LineReader reader = LineReader::over(text, name);
  for (Line line; reader.next(line);) {
    auto words = split_words(line.text);
    words.erase(std::ranges::find_if(words, [](auto word) { return word.starts_with('#'); }),
                words.end());
    if (words.empty()) continue;
    ApiKey key{std::string(words[0]), otherwise};
    check(key.key.size() <= kLongest, Exit::data, reader.where(), ": a key has at most ", kLongest,
          " characters");
    if (words.size() > 1) {
      const char* const end = words[1].data() + words[1].size();
      const auto [stop, error] = std::from_chars(words[1].data(), end, key.per_minute);
      check(error == std::errc() && stop == end && key.per_minute >= 0 && words.size() == 2,
            Exit::data, reader.where(),
            ": expected a key and the requests it may make in a minute, for example 'k3y 60'");
    }
    keys.keys_.push_back(std::move(key));
  }
  return keys;
}

const ApiKey* ApiKeys::find(std::string_view key) const {
  if (key.size() > kLongest) return nullptr;
  const ApiKey* found = nullptr;
  for (const ApiKey& known : keys_) {
    unsigned char different = known.key.size() == key.size() ? 0 : 1;
    for (size_t i = 0; i < kLongest; ++i) {
      const char a = i < key.size() ? key[i] : '\0', b = i < known.key.size() ? known.key[i] : '\0';
      different = static_cast<unsigned char>(different | (a ^ b));
    }
    if (different == 0) found = &known;
  }
  return found;
}

}  // namespace fovea

#include "serve/access_control.h"

#include <fmt/format.h>

#include <cmath>

#include "base/ascii.h"
#include "http/client_address.h"
#include "http/http_error.h"

namespace fovea {
namespace {

using Clock = RateLimiter::Clock;

std::string retry_after(double seconds) {
  return std::to_string(static_cast<int64_t>(std::ceil(seconds)));
}

// Returns the API key in the header Authorization, or "" if there is none.
std::string key_in_header(const HttpRequest& head) {
  const std::string_view header = head.header("authorization");
  for (const std::string_view scheme : {"Bearer ", "DeepL-Auth-Key "})
    if (lower_ascii(header.substr(0, scheme.size())) == lower_ascii(scheme))
      return std::string(header.substr(scheme.size()));
  return "";
}

// Returns the API key of a request: from the header Authorization, a field of the body, or the
// query.
std::string key_of(RequestContext& context) {
  if (std::string key = key_in_header(context.request); !key.empty()) return key;
  for (const char* name : {"api_key", "apiKey", "auth_key"})
    if (auto key = context.parameters().text(name)) return *key;
  return "";
}

}  // namespace

AccessControl::AccessControl(AccessOptions options)
    : options_(std::move(options)),
      keys_(std::make_shared<const ApiKeys>(std::move(options_.keys))) {}

void AccessControl::replace_keys(ApiKeys keys) {
  auto next = std::make_shared<const ApiKeys>(std::move(keys));
  const std::lock_guard hold(mutex_);
  keys_ = std::move(next);
}

std::shared_ptr<const ApiKeys> AccessControl::keys() const {
  const std::lock_guard hold(mutex_);
  return keys_;
}

std::string AccessControl::address_of(const HttpRequest& request) const {
  return client_group(request.client(options_.proxies));
}

void AccessControl::check_header(const HttpRequest& head) {
  check_key(head, *keys(), key_in_header(head));
}

// Returns the valid key of a request, or null if the request has none. Throws HttpError 403 if the
// key is wrong, and 429 after too many wrong keys from the same address.
const ApiKey* AccessControl::check_key(const HttpRequest& request, const ApiKeys& keys,
                                       const std::string& given) {
  if (keys.empty() || given.empty()) return nullptr;
  const std::string address = address_of(request);
  const auto now = Clock::now();
  if (const auto wait = guard_.wait(address, given, now))
    throw HttpError(429, "Slowdown: too many wrong API keys from this address",
                    {{"Retry-After", retry_after(*wait)}});
  const ApiKey* const key = keys.find(given);
  if (!key) {
    guard_.reject(address, now);
    throw HttpError(403, "Invalid API key");
  }
  guard_.accept(address, given);
  return key;
}

void AccessControl::admit(RequestContext& context, AccessRule access) {
  if (access == AccessRule::open) return;
  const std::shared_ptr<const ApiKeys> keys = this->keys();
  const ApiKey* const key =
      keys->empty() ? nullptr : check_key(context.request, *keys, key_of(context));
  const bool needed = options_.keys_required || (access == AccessRule::operators && !keys->empty());
  if (!key && needed) throw HttpError(400, "Please contact the server operator to get an API key");
  context.client = key ? "key " + key->key : "address " + address_of(context.request);
  if (access == AccessRule::operators) return;
  const int64_t per_minute = key ? key->per_minute : options_.requests_per_minute;
  if (const auto wait = limiter_.take(context.client, per_minute, Clock::now()))
    throw HttpError(429, fmt::format("Slowdown: {} per 1 minute", per_minute),
                    {{"Retry-After", retry_after(*wait)}});
}

}  // namespace fovea

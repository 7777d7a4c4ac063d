#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "http/api_keys.h"
#include "serve/router.h"

namespace fovea {

// The options of access control.
struct AccessOptions {
  ApiKeys keys = {};  // initial keys: see AccessControl::replace_keys
  bool keys_required = false;
  int64_t requests_per_minute = 0;  // of a client without a key; 0: no limit
  int64_t proxies = 0;              // the number of chained proxies before the service
};

// A checker of API keys and rate limits. It also slows down clients that guess keys. Thread-safe.
class AccessControl {
 public:
  explicit AccessControl(AccessOptions options);

  // Throws HttpError 403 or 429 if the header Authorization contains a wrong key.
  void check_header(const HttpRequest& head);
  // Identifies the client. Throws HttpError 400, 403 or 429 if the request is not allowed.
  void admit(RequestContext& context, AccessRule access);

  void replace_keys(ApiKeys keys);  // for all later requests
  bool has_keys() const { return !keys()->empty(); }
  bool keys_required() const { return options_.keys_required; }

 private:
  const ApiKey* check_key(const HttpRequest& request, const ApiKeys& keys,
                          const std::string& given);
  std::string address_of(const HttpRequest& request) const;  // as client_group() returns it
  std::shared_ptr<const ApiKeys> keys() const;

  AccessOptions options_;
  RateLimiter limiter_;
  KeyGuard guard_;
  mutable std::mutex mutex_;  // guards keys_
  std::shared_ptr<const ApiKeys> keys_;
};

}  // namespace fovea

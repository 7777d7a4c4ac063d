#pragma once

#include <exception>
#include <string>
#include <utility>

#include "serve/http.h"

namespace fovea {

// A request that is not answered as it wishes: the status and text that the client gets instead.
class Refusal : public std::exception {
 public:
  Refusal(int status, std::string text, Headers headers = {})
      : status_(status), text_(std::move(text)), headers_(std::move(headers)) {}
  int status() const { return status_; }
  const std::string& text() const { return text_; }
  const Headers& headers() const { return headers_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  int status_;
  std::string text_;
  Headers headers_;
};

}  // namespace fovea

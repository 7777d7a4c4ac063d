#pragma once

#include <exception>
#include <string>
#include <utility>

#include "http/http.h"

namespace fovea {

// An exception that ends a request: the status, text and headers of the error reply.
class HttpError : public std::exception {
 public:
  HttpError(int status, std::string text, Headers headers = {})
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

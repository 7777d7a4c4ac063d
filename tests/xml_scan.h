#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace fovea {

// A scanner for the XML that Fovea writes: elements, attributes in double quotes, numeric and the
// five named references, valid UTF-8 without forbidden characters. Returns "" or the error.
class XmlScan {
 public:
  explicit XmlScan(std::string_view text) : text_(text) {}

  std::string run() {
    if (!is_utf8(text_)) return "not UTF-8";
    for (char32_t c : code_points(text_))
      if ((c < 0x20 && c != '\n') || c == 0xFFFE || c == 0xFFFF) return "forbidden character";
    while (at_ < text_.size() && wrong_.empty()) text_[at_] == '<' ? tag() : content();
    if (wrong_.empty() && (!open_.empty() || roots_ != 1)) wrong_ = "not exactly one closed root";
    return wrong_;
  }

 private:
  bool here(std::string_view part) const { return text_.substr(at_, part.size()) == part; }

  void reference() {
    for (std::string_view known : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"})
      if (here(known)) {
        at_ += known.size();
        return;
      }
    wrong_ = "bare & at " + std::to_string(at_);
  }

  void content() {
    if (text_[at_] == '&') return reference();
    if (open_.empty() && text_[at_] != '\n') wrong_ = "text outside the root";
    ++at_;
  }

  std::string name() {
    const size_t from = at_;
    while (at_ < text_.size() && (isalnum(static_cast<unsigned char>(text_[at_])) ||
                                  text_[at_] == '-' || text_[at_] == ':'))
      ++at_;
    if (at_ == from) wrong_ = "name expected at " + std::to_string(at_);
    return std::string(text_.substr(from, at_ - from));
  }

  void expect(std::string_view part) {
    if (!here(part)) wrong_ = "'" + std::string(part) + "' expected at " + std::to_string(at_);
    at_ += part.size();
  }

  void attribute() {
    ++at_;
    name();
    expect("=\"");
    while (wrong_.empty() && at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '&')
        reference();
      else if (text_[at_] == '<')
        wrong_ = "< in an attribute";
      else
        ++at_;
    }
    expect("\"");
  }

  void tag() {
    if (here("</")) {
      at_ += 2;
      const std::string closed = name();
      expect(">");
      if (wrong_.empty() && (open_.empty() || open_.back() != closed))
        wrong_ = "</" + closed + "> does not close what is open";
      else if (wrong_.empty())
        open_.pop_back();
      return;
    }
    ++at_;
    if (open_.empty()) ++roots_;
    const std::string opened = name();
    while (wrong_.empty() && here(" ")) attribute();
    if (here("/>")) {
      at_ += 2;
    } else {
      expect(">");
      open_.push_back(opened);
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int roots_ = 0;
  std::vector<std::string> open_;
  std::string wrong_;
};

}  // namespace fovea

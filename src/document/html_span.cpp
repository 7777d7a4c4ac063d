#include "document/html_span.h"

#include <algorithm>
#include <utility>

#include "document/html_entities.h"

namespace fovea {

using Kind = MarkupToken::Kind;

HtmlRun::HtmlRun(std::span<const MarkupToken> tokens) {
  std::vector<int64_t> open{kNoElement};
  for (const MarkupToken& token : tokens) {
    if (token.kind == Kind::text) append(without_entities(token.bytes), open.back());
    if (token.kind == Kind::lone || token.kind == Kind::opening) add_element(token, open.back());
    if (token.kind == Kind::opening) open.push_back(std::ssize(elements_) - 1);
    if (token.kind != Kind::closing) continue;
    end_element(open.back(), token);
    open.pop_back();
  }
  set_space_after(space_pending_);
}

void HtmlRun::end_element(int64_t number, const MarkupToken& token) {
  HtmlElement& element = elements_[static_cast<size_t>(number)];
  element.closing = token.bytes;
  element.end = text_.size();
  element.last = elements_.size();
  const bool empty = number + 1 == std::ssize(elements_) && element.is_empty(text_);
  const bool space_before = std::exchange(element.space_before, empty && element.space_before);
  if (!empty) return;
  set_space_after(space_before);  // an icon: <i class="x"></i>
  last_empty_ = number;
  if (space_before) space_pending_ = false;
}

// Records whether a space follows the last element without content. Call it when content follows
// that element.
void HtmlRun::set_space_after(bool space) {
  if (last_empty_ >= 0) elements_[static_cast<size_t>(last_empty_)].space_after = space;
  last_empty_ = kNoElement;
}

// Appends text to the run. Collapses white space to one space, as browsers do.
void HtmlRun::append(std::string_view text, int64_t element) {
  const size_t before = text_.size();
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
    if (blank) {
      space_pending_ = true;
      if (!text_.empty() && text_.back() != ' ') text_ += ' ';
      continue;
    }
    set_space_after(space_pending_);
    space_pending_ = false;
    text_ += c;
  }
  if (text_.size() == before) return;
  if (zones_.empty() || zones_.back().element != element)
    zones_.push_back({before, before, element});
  zones_.back().end = text_.size();
}

void HtmlRun::add_element(const MarkupToken& token, int64_t parent) {
  elements_.push_back({.opening = std::string(token.bytes),
                       .parent = parent,
                       .depth = parent < 0 ? 0 : elements_[static_cast<size_t>(parent)].depth + 1,
                       .begin = text_.size(),
                       .end = text_.size(),
                       .last = elements_.size() + 1});
  elements_.back().space_before = space_pending_;
  if (token.kind != Kind::lone) return;
  set_space_after(space_pending_);
  last_empty_ = std::ssize(elements_) - 1;
  space_pending_ = false;
}

std::vector<HtmlPart> HtmlRun::parts(size_t begin, size_t end) const {
  std::vector<HtmlPart> parts;
  auto zone = std::ranges::upper_bound(zones_, begin, {}, &HtmlPart::end);
  for (; zone != zones_.end() && zone->begin < end; ++zone)
    parts.push_back({std::max(begin, zone->begin), std::min(end, zone->end), zone->element});
  return parts;
}

bool HtmlElement::is_empty(std::string_view text) const {
  return begin == end || (begin + 1 == end && text[begin] == ' ');
}

std::vector<int64_t> HtmlRun::around(int64_t element) const {
  std::vector<int64_t> stack;
  for (; element >= 0; element = elements_[static_cast<size_t>(element)].parent)
    stack.push_back(element);
  std::ranges::reverse(stack);
  return stack;
}

bool HtmlRun::is_inside(int64_t element, int64_t outer) const {
  while (element > outer) element = elements_[static_cast<size_t>(element)].parent;
  return element == outer;
}

}  // namespace fovea

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "document/markup.h"

namespace fovea {

inline constexpr int64_t kNoElement = -1;

// An inline element of a run. It may have no content, such as <img> or an unknown reference.
struct HtmlElement {
  std::string opening, closing = {};  // tags; without a closing tag it has no content
  int64_t parent = kNoElement;
  size_t depth = 0;                                // the number of ancestors
  size_t begin = 0, end = 0;                       // byte range in the text of the run
  size_t last = 0;                                 // index one past its last descendant
  bool space_before = false, space_after = false;  // of an element without content: <img>, <i></i>

  bool is_empty(std::string_view text) const;  // without words; `text`: of the run
};

// A byte range of a text and its innermost element.
struct HtmlPart {
  size_t begin = 0, end = 0;
  int64_t element = kNoElement;
};

// A run: the text between two block elements, and the inline elements that belong to its words.
class HtmlRun {
 public:
  // REQUIRES: each opening tag has its closing tag, and the tags are properly nested
  explicit HtmlRun(std::span<const MarkupToken> tokens);

  // Returns the text of the run, without tags and with references decoded. A sequence of white
  // space is one space.
  const std::string& text() const { return text_; }
  const std::vector<HtmlElement>& elements() const { return elements_; }  // parents first
  // Returns the bytes [begin, end) of the text, split where elements begin or end.
  std::vector<HtmlPart> parts(size_t begin, size_t end) const;
  std::vector<int64_t> around(int64_t element) const;  // its ancestors and itself, outermost first
  bool is_inside(int64_t element, int64_t outer) const;  // also true if they are equal

 private:
  void append(std::string_view text, int64_t element);
  void add_element(const MarkupToken& token, int64_t parent);
  void end_element(int64_t number, const MarkupToken& token);
  void set_space_after(bool space);

  std::string text_;
  std::vector<HtmlElement> elements_;
  std::vector<HtmlPart> zones_;  // the text, split where elements begin or end
  bool space_pending_ = false;   // white space follows the last character or <img>
  int64_t last_empty_ =
      kNoElement;  // index of the last element without content, if nothing has followed it yet
};

}  // namespace fovea

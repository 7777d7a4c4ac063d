#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "serve/markup.h"

namespace fovea {

inline constexpr int64_t kNoElement = -1;

// An element inside a sentence, or what has no content there: <img>, a reference nobody knows.
struct HtmlElement {
  std::string opening, closing = {};  // no closing tag: no content
  int64_t parent = kNoElement;
  size_t depth = 0;                                // elements around it
  size_t begin = 0, end = 0;                       // bytes of the run's text
  size_t last = 0;                                 // behind those inside it
  bool blank_before = false, blank_after = false;  // of what has no content: <img>, <i></i>

  bool is_empty(std::string_view text) const;  // the run's: it has no words
};

// A stretch of a text and the innermost element around it.
struct HtmlPart {
  size_t begin = 0, end = 0;
  int64_t element = kNoElement;
};

// What stands between two blocks: text, and elements that go with its words.
class HtmlRun {
 public:
  explicit HtmlRun(std::span<const MarkupToken> tokens);  // REQUIRES: every tag has its partner

  const std::string& text() const { return text_; }  // no tags, no entities, no blanks in a row
  const std::vector<HtmlElement>& elements() const { return elements_; }  // outer before inner
  // The stretches of a word, cut where elements begin or end.
  std::vector<HtmlPart> parts(size_t begin, size_t end) const;
  std::vector<int64_t> around(int64_t element) const;    // and itself, outermost first
  bool is_inside(int64_t element, int64_t outer) const;  // or is it

 private:
  void append(std::string_view text, int64_t element);
  void add_element(const MarkupToken& token, int64_t parent);
  void end_element(int64_t number, const MarkupToken& token);
  void end_blanks(bool blank);

  std::string text_;
  std::vector<HtmlElement> elements_;
  std::vector<HtmlPart> zones_;     // the text, cut where elements begin or end
  bool gap_ = false;                // a blank stands behind the last character or <img>
  int64_t last_lone_ = kNoElement;  // what has no content and nothing behind it as yet
};

}  // namespace fovea

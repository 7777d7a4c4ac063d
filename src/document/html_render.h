#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/translator.h"
#include "document/html_span.h"

namespace fovea {

// A renderer that turns the translation of a run (HtmlRun) into HTML. The caller adds the sentences
// and the text between them in order, each with its offset in the text of the run.
class HtmlRunRenderer {
 public:
  // The run must outlive the renderer. An empty target language means unknown.
  HtmlRunRenderer(const HtmlRun& run, std::string target_language)
      : run_(run), target_language_(std::move(target_language)) {}

  void add_unchanged(std::string_view between, size_t begin);  // adds text as it is
  void add_sentence(std::string_view sentence, size_t begin, const Alternative& best);
  std::string html() const;

 private:
  // A word, a part of a word, or an element without words. If the items of an element are not
  // adjacent, its tags are written several times.
  struct Item {
    std::string html;
    int64_t element = kNoElement;
    bool spaced = true;  // a space precedes it
  };
  // A word of the source: its bytes, and the range [before, after) of the items of its translation.
  struct SourceWord {
    size_t begin = 0, end = 0;
    size_t before = 0, after = 0;
  };
  // Where an element without words is inserted: before `item`, or after the item that precedes it.
  struct InsertionPoint {
    size_t item = 0;
    bool after_item = false;
  };
  struct ItemRange {
    size_t first = 0, end = 0;  // indices of items; first = end = 0: no items
  };
  struct EmptyElements {
    std::vector<std::vector<size_t>> before, after_item;  // elements by item; last: after all items
  };
  enum class Space { as_in_source, none, one };  // the space before an element
  using TargetWord = std::vector<std::pair<std::string_view, int64_t>>;  // parts with elements

  TargetWord target_word(std::string_view translation, const SourceWord& source) const;
  void fill_elements(const Alternative& best, std::span<const SourceWord> source_words,
                     std::span<TargetWord> words) const;
  std::vector<size_t> add_items(std::span<const TargetWord> words, bool spaced);
  static void set_item_ranges(const Alternative& best, std::span<const int64_t> source,
                              std::span<const size_t> starts, std::span<SourceWord> source_words);
  std::vector<ItemRange> item_ranges() const;
  bool fits(const InsertionPoint& point, int64_t element) const;
  InsertionPoint insertion_point(const HtmlElement& element,
                                 std::span<const ItemRange> item_ranges) const;
  EmptyElements place_empty_elements() const;
  Space append_empty_element(size_t element, Space space, std::vector<Item>& items) const;
  std::vector<Item> all_items() const;
  bool only_space(size_t begin, size_t end) const;
  bool spaced_before(std::string_view sentence, size_t begin, const Alternative& best) const;

  const HtmlRun& run_;
  std::string target_language_;
  std::vector<Item> items_;
  std::vector<SourceWord> source_words_;
  std::string_view last_sentence_;  // "" if other text than spaces followed it
  std::string last_translation_;
};

}  // namespace fovea

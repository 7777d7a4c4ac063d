#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/translate.h"
#include "serve/html_run.h"

namespace fovea {

// The translation of a run on its way to HTML again. Its sentences, and what stands between them,
// are given one after the other, each with where it begins in the run's text.
class RunTranslation {
 public:
  // The run must outlive it. An empty target language is unknown.
  RunTranslation(const HtmlRun& run, std::string target_language)
      : run_(run), target_language_(std::move(target_language)) {}

  void add_signs(std::string_view between, size_t begin);  // they stay as they are
  void add_sentence(std::string_view sentence, size_t begin, const Alternative& best);
  std::string html() const;

 private:
  // A word, a part of one, or what has no words. All that lies in one element need not stand
  // together: its tags are then written several times.
  struct Item {
    std::string html;
    int64_t element = kNoElement;
    bool spaced = true;  // a blank stands before it
  };
  // A word of the source, and between which items that stands that it became.
  struct Place {
    size_t begin = 0, end = 0;
    size_t before = 0, after = 0;
  };
  // Where an element without words goes: before the item or behind the one before it.
  struct Gap {
    size_t item = 0;
    bool behind = false;
  };
  struct Extent {
    size_t first = 0, end = 0;  // items; 0, 0: none
  };
  struct Wordless {
    std::vector<std::vector<size_t>> before, behind;  // elements for each item, and at the end
  };
  enum class Blank { own, none, one };  // before something; own: as in the source
  using TargetWord = std::vector<std::pair<std::string_view, int64_t>>;  // parts with elements

  std::vector<TargetWord> target_words(const Alternative& best, std::span<const Place> places,
                                       std::span<const int64_t> source) const;
  void fill_elements(const Alternative& best, std::span<const Place> places,
                     std::span<TargetWord> words) const;
  std::vector<size_t> add_items(std::span<const TargetWord> words, bool spaced);
  static void find_gaps(const Alternative& best, std::span<const int64_t> source,
                        std::span<const size_t> starts, std::span<Place> places);
  std::vector<Extent> extents() const;
  bool fits(const Gap& gap, int64_t element) const;
  Gap gap_for(const HtmlElement& element, std::span<const Extent> extents) const;
  Wordless place_wordless() const;
  Blank append_wordless(size_t element, Blank blank, std::vector<Item>& items) const;
  std::vector<Item> all_items() const;
  bool only_blank(size_t begin, size_t end) const;
  bool spaced_before(std::string_view sentence, size_t begin, const Alternative& best) const;

  const HtmlRun& run_;
  std::string target_language_;
  std::vector<Item> items_;
  std::vector<Place> places_;
  std::string_view last_sentence_;  // if nothing but blanks follows it as yet
  std::string last_translation_;
};

}  // namespace fovea

#include "document/html_render.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "base/ascii.h"
#include "base/utf8.h"
#include "document/html_entities.h"
#include "text/sentence_gap.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

// Returns the index of the source word of each target word: that of the aligned word, or else that
// of the previous target word, or −1. Without an alignment, assigns words in proportion to their
// positions.
std::vector<int64_t> sources_of(const Alternative& best, size_t target_words, size_t source_words) {
  std::vector<int64_t> source(target_words, -1);
  for (const auto& [from, to] : best.alignment)
    if (to >= 0 && to < std::ssize(source) && from >= 0 && static_cast<size_t>(from) < source_words)
      source[static_cast<size_t>(to)] = from;
  const bool aligned = std::ranges::any_of(source, [](int64_t s) { return s >= 0; });
  for (size_t i = 0; i < target_words; ++i) {
    if (!aligned) source[i] = static_cast<int64_t>(i * source_words / target_words);
    if (source[i] < 0 && i > 0) source[i] = source[i - 1];
  }
  return source;
}

bool has_letters(std::string_view text) {
  return std::ranges::any_of(code_points(text),
                             [](char32_t c) { return u_isalpha(static_cast<UChar32>(c)); });
}

}  // namespace

void HtmlRunRenderer::add_unchanged(std::string_view between, size_t begin) {
  for (const std::string_view word : split_words(between)) {
    const size_t at = begin + static_cast<size_t>(word.data() - between.data());
    const size_t first = items_.size();
    for (const HtmlPart& part : run_.parts(at, at + word.size())) {
      const bool spaced = part.begin == at && at > 0 && run_.text()[at - 1] == ' ';
      const std::string_view text =
          std::string_view(run_.text()).substr(part.begin, part.end - part.begin);
      items_.push_back({with_entities(text), part.element, spaced});
    }
    source_words_.push_back({at, at + word.size(), first, items_.size()});
    last_sentence_ = {};
  }
}

void HtmlRunRenderer::add_sentence(std::string_view sentence, size_t begin,
                                   const Alternative& best) {
  const size_t first = items_.size();
  std::vector<SourceWord> source_words;
  for (const std::string_view word : text_words(sentence)) {
    const size_t at = begin + static_cast<size_t>(word.data() - sentence.data());
    source_words.push_back({at, at + word.size(), first, first});
  }
  const std::vector<std::string_view> target = text_words(best.text);
  if (!target.empty()) {
    const auto source = sources_of(best, target.size(), source_words.size());
    std::vector<TargetWord> words;
    for (size_t i = 0; i < target.size(); ++i)
      words.push_back(source[i] < 0
                          ? TargetWord{{target[i], kNoElement}}
                          : target_word(target[i], source_words[static_cast<size_t>(source[i])]));
    fill_elements(best, source_words, words);
    const bool spaced = spaced_before(sentence, begin, best);
    set_item_ranges(best, source, add_items(words, spaced), source_words);
  }
  source_words.front().before = first;  // elements at the start of the sentence stay there
  source_words.back().after = items_.size();
  source_words_.insert(source_words_.end(), source_words.begin(), source_words.end());
  last_sentence_ = sentence;
  last_translation_ = best.text;
}

// Whether a space precedes the translation of a sentence.
bool HtmlRunRenderer::spaced_before(std::string_view sentence, size_t begin,
                                    const Alternative& best) const {
  const std::string_view space = begin > 0 && run_.text()[begin - 1] == ' ' ? " " : "";
  if (last_sentence_.empty()) return !space.empty();
  return !translated_gap({.text = space,
                          .source_before = last_sentence_,
                          .source_after = sentence,
                          .before = last_translation_,
                          .after = best.text},
                         target_language_)
              .empty();
}

// Distributes the translation of a word over the elements in the word. Parts without letters at the
// start or end of the word that the translation also has keep their elements: "(<b>one</b>),". The
// rest gets the element of the longest part with letters. If the translation is equal to the word,
// it is split as in the source: H<sub>2</sub>O.
HtmlRunRenderer::TargetWord HtmlRunRenderer::target_word(std::string_view translation,
                                                         const SourceWord& source) const {
  const std::string_view text = run_.text();
  const bool same = translation == text.substr(source.begin, source.end - source.begin);
  const std::vector<HtmlPart> all = run_.parts(source.begin, source.end);
  std::span<const HtmlPart> parts = all;
  const auto text_of = [&](const HtmlPart& part) {
    return text.substr(part.begin, part.end - part.begin);
  };
  const auto stays = [&](const HtmlPart& part) {
    return parts.size() > 1 && (same || !has_letters(text_of(part)));
  };
  TargetWord word, reversed_end;
  while (stays(parts.front()) && translation.starts_with(text_of(parts.front()))) {
    const size_t size = text_of(parts.front()).size();
    word.emplace_back(translation.substr(0, size), parts.front().element);
    translation.remove_prefix(size);
    parts = parts.subspan(1);
  }
  while (stays(parts.back()) && translation.ends_with(text_of(parts.back()))) {
    const size_t size = text_of(parts.back()).size();
    reversed_end.emplace_back(translation.substr(translation.size() - size), parts.back().element);
    translation.remove_suffix(size);
    parts = parts.first(parts.size() - 1);
  }
  const auto longest = std::ranges::max_element(parts, {}, [&](const HtmlPart& part) {
    const std::string_view bytes = text_of(part);
    return std::tuple(part.element >= 0 && has_letters(bytes), bytes.size());
  });
  if (!translation.empty()) word.emplace_back(translation, longest->element);
  word.insert(word.end(), reversed_end.rbegin(), reversed_end.rend());
  return word;
}

// An element without any target word receives the word that attends to it most, unless that word
// is already in another element.
void HtmlRunRenderer::fill_elements(const Alternative& best,
                                    std::span<const SourceWord> source_words,
                                    std::span<TargetWord> words) const {
  std::set<int64_t> used;
  const auto use = [&](int64_t element) {
    for (const int64_t e : run_.around(element)) used.insert(e);
  };
  for (const TargetWord& word : words)
    for (const auto& [text, element] : word) use(element);
  for (size_t j = 0; j < std::min(source_words.size(), best.nearest.size()); ++j) {
    const int to = best.nearest[j];
    if (to < 0 || to >= std::ssize(words)) continue;
    for (const HtmlPart& part : run_.parts(source_words[j].begin, source_words[j].end)) {
      TargetWord& word = words[static_cast<size_t>(to)];
      if (part.element < 0 || used.contains(part.element) || word.size() > 1) continue;
      int64_t& now = word.front().second;
      if (now >= 0 && !run_.is_inside(part.element, now)) continue;
      now = part.element;
      use(now);
    }
  }
}

// Returns the first item of each word, followed by the number of items.
std::vector<size_t> HtmlRunRenderer::add_items(std::span<const TargetWord> words, bool spaced) {
  std::vector<size_t> starts;
  const char* end = nullptr;  // end of the previous word
  for (const TargetWord& word : words) {
    starts.push_back(items_.size());
    if (end) spaced = word.front().first.data() != end;
    for (const auto& [text, element] : word) {
      items_.push_back({with_entities(text), element, spaced});
      spaced = false;
      end = text.data() + text.size();
    }
  }
  starts.push_back(items_.size());
  return starts;
}

// Sets the items of each source word to the items of its target words. If a source word has no
// target word, takes the target word that attends to it most, or else the target word at the
// proportional position.
void HtmlRunRenderer::set_item_ranges(const Alternative& best, std::span<const int64_t> source,
                                      std::span<const size_t> starts,
                                      std::span<SourceWord> source_words) {
  const size_t targets = source.size();
  for (size_t j = 0; j < source_words.size(); ++j) {
    const int64_t nearest = j < best.nearest.size() ? best.nearest[j] : -1;
    const bool near = nearest >= 0 && nearest < std::ssize(source);
    const size_t to = near ? static_cast<size_t>(nearest) : j * targets / source_words.size();
    source_words[j].before = starts[to];
    source_words[j].after = starts[to + 1];
  }
  for (size_t i = targets; i-- > 0;)
    if (source[i] >= 0) source_words[static_cast<size_t>(source[i])].before = starts[i];
  for (size_t i = 0; i < targets; ++i)
    if (source[i] >= 0) source_words[static_cast<size_t>(source[i])].after = starts[i + 1];
}

// Returns the range from the first to the last item of each element.
std::vector<HtmlRunRenderer::ItemRange> HtmlRunRenderer::item_ranges() const {
  std::vector<ItemRange> item_ranges(run_.elements().size());
  const auto parent = [&](int64_t e) { return run_.elements()[static_cast<size_t>(e)].parent; };
  std::vector<bool> begun(item_ranges.size()), ended(item_ranges.size());
  for (size_t i = 0; i < items_.size(); ++i)
    for (int64_t e = items_[i].element; e >= 0 && !begun[static_cast<size_t>(e)]; e = parent(e)) {
      begun[static_cast<size_t>(e)] = true;
      item_ranges[static_cast<size_t>(e)].first = i;
    }
  for (size_t i = items_.size(); i-- > 0;)
    for (int64_t e = items_[i].element; e >= 0 && !ended[static_cast<size_t>(e)]; e = parent(e)) {
      ended[static_cast<size_t>(e)] = true;
      item_ranges[static_cast<size_t>(e)].end = i + 1;
    }
  return item_ranges;
}

bool HtmlRunRenderer::only_space(size_t begin, size_t end) const {
  return begin == end || (begin + 1 == end && run_.text()[begin] == ' ');
}

bool HtmlRunRenderer::fits(const InsertionPoint& point, int64_t element) const {
  if (element < 0) return true;
  const size_t item = point.after_item ? point.item - 1 : point.item;  // 0 − 1 is out of range
  return item < items_.size() && run_.is_inside(items_[item].element, element);
}

// Returns where to insert an element without words, or one that received no word. An element at the
// start or end of its parent stays there. Otherwise it goes after the word before it if no space is
// between them, or else before the next word.
HtmlRunRenderer::InsertionPoint HtmlRunRenderer::insertion_point(
    const HtmlElement& element, std::span<const ItemRange> item_ranges) const {
  const int64_t outer = element.parent;
  if (outer >= 0) {
    const HtmlElement& around = run_.elements()[static_cast<size_t>(outer)];
    const ItemRange& range = item_ranges[static_cast<size_t>(outer)];
    if (only_space(around.begin, element.begin)) return {range.first, false};
    if (only_space(element.end, around.end)) return {range.end, true};
  }
  const auto next = std::ranges::lower_bound(source_words_, element.begin, {}, &SourceWord::begin);
  const bool any_next = next != source_words_.end(), any_last = next != source_words_.begin();
  std::vector<InsertionPoint> points;
  if (any_next) points.push_back({next->before, false});
  if (any_last) {
    const SourceWord& last = *std::prev(next);
    const bool touches =
        last.end > element.begin || (last.end == element.begin && element.begin == element.end);
    points.insert(touches ? points.begin() : points.end(), {last.after, true});
  }
  for (const InsertionPoint& point : points)
    if (fits(point, outer)) return point;
  return {item_ranges[static_cast<size_t>(outer)].first, false};
}

HtmlRunRenderer::EmptyElements HtmlRunRenderer::place_empty_elements() const {
  const auto& elements = run_.elements();
  EmptyElements placed;
  placed.before.resize(items_.size() + 1);
  placed.after_item.resize(items_.size() + 1);
  const auto all = item_ranges();
  for (size_t e = 0; e < elements.size();) {
    if (all[e].end > 0) {
      ++e;
      continue;
    }
    const InsertionPoint point = insertion_point(elements[e], all);
    (point.after_item ? placed.after_item : placed.before)[point.item].push_back(e);
    e = elements[e].last;  // the descendants of an element move with it
  }
  // Deeper elements must be nearer to the word. Otherwise the element of the word would be split.
  const auto depth = [&](size_t e) { return elements[e].depth; };
  for (auto& some : placed.before) std::ranges::stable_sort(some, std::less<>(), depth);
  for (auto& some : placed.after_item) std::ranges::stable_sort(some, std::greater<>(), depth);
  return placed;
}

// Appends an element without words to `items`. Returns the space that follows the element.
HtmlRunRenderer::Space HtmlRunRenderer::append_empty_element(size_t element, Space space,
                                                             std::vector<Item>& items) const {
  const auto& elements = run_.elements();
  Space space_after = Space::none;
  for (size_t e = element; e < elements[element].last; ++e) {
    const bool lone = elements[e].closing.empty();
    if (!lone && elements[e].last > e + 1) continue;  // its descendants write its tags
    const bool spaced =
        space == Space::as_in_source ? elements[e].space_before : space == Space::one;
    if (lone)
      items.push_back({elements[e].opening, elements[e].parent, spaced});
    else
      items.push_back({"", static_cast<int64_t>(e), spaced});
    space_after = elements[e].space_after ? Space::one : Space::none;
    space = Space::as_in_source;
  }
  return space_after;
}

std::vector<HtmlRunRenderer::Item> HtmlRunRenderer::all_items() const {
  const EmptyElements empty = place_empty_elements();
  std::vector<Item> all;
  for (size_t i = 0; i <= items_.size(); ++i) {
    for (const size_t e : empty.after_item[i]) append_empty_element(e, Space::as_in_source, all);
    // An element before a word takes over the space of the word. The word gets the space that
    // followed the element.
    Space space = i == items_.size() ? Space::as_in_source
                  : items_[i].spaced ? Space::one
                                     : Space::none;
    for (const size_t e : empty.before[i]) space = append_empty_element(e, space, all);
    if (i == items_.size()) break;
    all.push_back(items_[i]);
    all.back().spaced = space == Space::one;
  }
  return all;
}

std::string HtmlRunRenderer::html() const {
  const auto& elements = run_.elements();
  std::string html;
  std::vector<int64_t> open;
  const auto close_to = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back())
      html += elements[static_cast<size_t>(open.back())].closing;
  };
  bool first = true;
  for (const Item& item : all_items()) {
    const std::vector<int64_t> around = run_.around(item.element);
    const auto same = std::ranges::mismatch(open, around).in1;
    close_to(static_cast<size_t>(same - open.begin()));
    if (!first && item.spaced) html += ' ';
    for (size_t e = open.size(); e < around.size(); ++e) {
      html += elements[static_cast<size_t>(around[e])].opening;
      open.push_back(around[e]);
    }
    html += item.html;
    first = false;
  }
  close_to(0);
  return html;
}

}  // namespace fovea

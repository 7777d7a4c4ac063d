#include "serve/run_translation.h"

#include <algorithm>
#include <functional>
#include <set>

#include "serve/entities.h"
#include "serve/sentence_gap.h"
#include "serve/word_parts.h"
#include "text/pieces.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

// For each word of the translation the source word that it comes from, −1 for none: that of the
// alignment, or of the word before; without an alignment in proportion.
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

}  // namespace

void RunTranslation::add_signs(std::string_view between, size_t begin) {
  for (const std::string_view word : split_words(between)) {
    const size_t at = begin + static_cast<size_t>(word.data() - between.data());
    const size_t first = items_.size();
    for (const HtmlPart& part : run_.parts(at, at + word.size())) {
      const bool spaced = part.begin == at && at > 0 && run_.text()[at - 1] == ' ';
      const std::string_view text =
          std::string_view(run_.text()).substr(part.begin, part.end - part.begin);
      items_.push_back({with_entities(text), part.element, spaced});
    }
    places_.push_back({at, at + word.size(), first, items_.size()});
    last_sentence_ = {};
  }
}

void RunTranslation::add_sentence(std::string_view sentence, size_t begin,
                                  const Alternative& best) {
  const size_t first = items_.size();
  std::vector<Place> places;
  for (const std::string_view word : text_words(sentence)) {
    const size_t at = begin + static_cast<size_t>(word.data() - sentence.data());
    places.push_back({at, at + word.size(), first, first});
  }
  const size_t targets = text_words(best.text).size();
  if (targets > 0) {
    const auto source = sources_of(best, targets, places.size());
    auto words = target_words(best, places, source);
    fill_elements(best, places, words);
    const bool spaced = spaced_before(sentence, begin, best);
    find_gaps(best, source, add_items(words, spaced), places);
  }
  places.front().before = first;  // what begins a sentence begins its translation
  places.back().after = items_.size();
  places_.insert(places_.end(), places.begin(), places.end());
  last_sentence_ = sentence;
  last_translation_ = best.text;
}

// Whether a blank stands before the translation of a sentence.
bool RunTranslation::spaced_before(std::string_view sentence, size_t begin,
                                   const Alternative& best) const {
  const std::string_view blank = begin > 0 && run_.text()[begin - 1] == ' ' ? " " : "";
  if (last_sentence_.empty()) return !blank.empty();
  return !translated_gap({.text = blank,
                          .source_before = last_sentence_,
                          .source_after = sentence,
                          .before = last_translation_,
                          .after = best.text},
                         target_language_)
              .empty();
}

std::vector<RunTranslation::TargetWord> RunTranslation::target_words(
    const Alternative& best, std::span<const Place> places, std::span<const int64_t> source) const {
  const auto target = text_words(best.text);
  std::vector<TargetWord> words;
  for (size_t i = 0, end = 0; i < target.size(); i = end) {
    while (end < target.size() && source[end] == source[i]) ++end;
    // Words that come from the same one, with the blanks between them.
    const std::string_view all(target[i].data(),
                               static_cast<size_t>(target[end - 1].end() - target[i].begin()));
    std::vector<HtmlPart> parts{{0, all.size(), kNoElement}};
    if (source[i] >= 0) {
      const Place& place = places[static_cast<size_t>(source[i])];
      parts = cut_like(run_.parts(place.begin, place.end), run_.text(), all);
    }
    size_t p = 0;
    for (const std::string_view word : std::span(target).subspan(i, end - i)) {
      const auto begin = static_cast<size_t>(word.data() - all.data());
      TargetWord& cut = words.emplace_back();
      while (parts[p].end <= begin) ++p;
      for (size_t at = begin; at < begin + word.size();) {
        const size_t stop = std::min(parts[p].end, begin + word.size());
        cut.emplace_back(all.substr(at, stop - at), parts[p].element);
        at = stop;
        if (at < begin + word.size()) ++p;
      }
    }
  }
  return words;
}

// An element that no word came to takes the word that looks at it most, if that lies in no other.
void RunTranslation::fill_elements(const Alternative& best, std::span<const Place> places,
                                   std::span<TargetWord> words) const {
  std::set<int64_t> used;
  const auto use = [&](int64_t element) {
    for (const int64_t e : run_.around(element)) used.insert(e);
  };
  for (const TargetWord& word : words)
    for (const auto& [text, element] : word) use(element);
  for (size_t j = 0; j < std::min(places.size(), best.nearest.size()); ++j) {
    const int to = best.nearest[j];
    if (to < 0 || to >= std::ssize(words)) continue;
    for (const HtmlPart& part : run_.parts(places[j].begin, places[j].end)) {
      TargetWord& word = words[static_cast<size_t>(to)];
      if (part.element < 0 || used.contains(part.element) || word.size() > 1) continue;
      int64_t& now = word.front().second;
      if (now >= 0 && !run_.is_inside(part.element, now)) continue;
      now = part.element;
      use(now);
    }
  }
}

// Returns the first item of each word, and at last the number of items.
std::vector<size_t> RunTranslation::add_items(std::span<const TargetWord> words, bool spaced) {
  std::vector<size_t> starts;
  const char* end = nullptr;  // of the word before
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

// A source word stands where the words are that come from it, or the one that looks at it most, or
// else in proportion.
void RunTranslation::find_gaps(const Alternative& best, std::span<const int64_t> source,
                               std::span<const size_t> starts, std::span<Place> places) {
  const size_t targets = source.size();
  for (size_t j = 0; j < places.size(); ++j) {
    const int64_t nearest = j < best.nearest.size() ? best.nearest[j] : -1;
    const bool near = nearest >= 0 && nearest < std::ssize(source);
    const size_t to = near ? static_cast<size_t>(nearest) : j * targets / places.size();
    places[j].before = starts[to];
    places[j].after = starts[to + 1];
  }
  for (size_t i = targets; i-- > 0;)
    if (source[i] >= 0) places[static_cast<size_t>(source[i])].before = starts[i];
  for (size_t i = 0; i < targets; ++i)
    if (source[i] >= 0) places[static_cast<size_t>(source[i])].after = starts[i + 1];
}

// The items of each element, from the first to the last.
std::vector<RunTranslation::Extent> RunTranslation::extents() const {
  std::vector<Extent> extents(run_.elements().size());
  const auto parent = [&](int64_t e) { return run_.elements()[static_cast<size_t>(e)].parent; };
  std::vector<bool> begun(extents.size()), ended(extents.size());
  for (size_t i = 0; i < items_.size(); ++i)
    for (int64_t e = items_[i].element; e >= 0 && !begun[static_cast<size_t>(e)]; e = parent(e)) {
      begun[static_cast<size_t>(e)] = true;
      extents[static_cast<size_t>(e)].first = i;
    }
  for (size_t i = items_.size(); i-- > 0;)
    for (int64_t e = items_[i].element; e >= 0 && !ended[static_cast<size_t>(e)]; e = parent(e)) {
      ended[static_cast<size_t>(e)] = true;
      extents[static_cast<size_t>(e)].end = i + 1;
    }
  return extents;
}

bool RunTranslation::only_blank(size_t begin, size_t end) const {
  return begin == end || (begin + 1 == end && run_.text()[begin] == ' ');
}

bool RunTranslation::fits(const Gap& gap, int64_t element) const {
  if (element < 0) return true;
  const size_t item = gap.behind ? gap.item - 1 : gap.item;  // none before the first: too large
  return item < items_.size() && run_.is_inside(items_[item].element, element);
}

// Where an element goes that has no words, or to which none came. What begins or ends the element
// around it still does. Else it goes behind the word that it touches, or before the next one.
RunTranslation::Gap RunTranslation::gap_for(const HtmlElement& element,
                                            std::span<const Extent> extents) const {
  const int64_t outer = element.parent;
  if (outer >= 0) {
    const HtmlElement& around = run_.elements()[static_cast<size_t>(outer)];
    const Extent& extent = extents[static_cast<size_t>(outer)];
    if (only_blank(around.begin, element.begin)) return {extent.first, false};
    if (only_blank(element.end, around.end)) return {extent.end, true};
  }
  const auto next = std::ranges::lower_bound(places_, element.begin, {}, &Place::begin);
  const bool any_next = next != places_.end(), any_last = next != places_.begin();
  std::vector<Gap> gaps;
  if (any_next) gaps.push_back({next->before, false});
  if (any_last) {
    const Place& last = *std::prev(next);
    const bool touches =
        last.end > element.begin || (last.end == element.begin && element.begin == element.end);
    gaps.insert(touches ? gaps.begin() : gaps.end(), {last.after, true});
  }
  for (const Gap& gap : gaps)
    if (fits(gap, outer)) return gap;
  return {extents[static_cast<size_t>(outer)].first, false};
}

RunTranslation::Wordless RunTranslation::place_wordless() const {
  const auto& elements = run_.elements();
  Wordless placed;
  placed.before.resize(items_.size() + 1);
  placed.behind.resize(items_.size() + 1);
  const auto all = extents();
  for (size_t e = 0; e < elements.size();) {
    if (all[e].end > 0) {
      ++e;
      continue;
    }
    const Gap gap = gap_for(elements[e], all);
    (gap.behind ? placed.behind : placed.before)[gap.item].push_back(e);
    e = elements[e].last;  // what is inside goes with it
  }
  // What lies deeper stands nearer to the word, whose element would be cut otherwise.
  const auto depth = [&](size_t e) { return elements[e].depth; };
  for (auto& some : placed.before) std::ranges::stable_sort(some, std::less<>(), depth);
  for (auto& some : placed.behind) std::ranges::stable_sort(some, std::greater<>(), depth);
  return placed;
}

// Returns the blank that stands behind it.
RunTranslation::Blank RunTranslation::append_wordless(size_t element, Blank blank,
                                                      std::vector<Item>& items) const {
  const auto& elements = run_.elements();
  Blank behind = Blank::none;
  for (size_t e = element; e < elements[element].last; ++e) {
    const bool lone = elements[e].closing.empty();
    if (!lone && elements[e].last > e + 1) continue;  // what is inside opens it
    const bool spaced = blank == Blank::own ? elements[e].blank_before : blank == Blank::one;
    if (lone)
      items.push_back({elements[e].opening, elements[e].parent, spaced});
    else
      items.push_back({"", static_cast<int64_t>(e), spaced});
    behind = elements[e].blank_after ? Blank::one : Blank::none;
    blank = Blank::own;
  }
  return behind;
}

std::vector<RunTranslation::Item> RunTranslation::all_items() const {
  const Wordless wordless = place_wordless();
  std::vector<Item> all;
  for (size_t i = 0; i <= items_.size(); ++i) {
    for (const size_t e : wordless.behind[i]) append_wordless(e, Blank::own, all);
    // What stands before a word takes the word's blank and leaves it the one behind itself.
    Blank blank = i == items_.size() ? Blank::own : items_[i].spaced ? Blank::one : Blank::none;
    for (const size_t e : wordless.before[i]) blank = append_wordless(e, blank, all);
    if (i == items_.size()) break;
    all.push_back(items_[i]);
    all.back().spaced = blank == Blank::one;
  }
  return all;
}

std::string RunTranslation::html() const {
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

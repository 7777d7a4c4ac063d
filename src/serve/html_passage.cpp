#include <algorithm>
#include <numeric>
#include <set>

#include "serve/markup.h"
#include "serve/passage.h"
#include "serve/sentences.h"
#include "text/pieces.h"

namespace fovea {
namespace {

// Note [Markup]
// Block elements, comments and scripts end a sentence and stay where they are. Elements inside a
// sentence (<b>, <a>) go with its words: the text between two blocks, a run, is translated without
// its tags; each word of the translation then lies in the elements in which the source word lay
// that it comes from, as the model's attention says. Tags are written where these elements change
// from word to word, so that they are always properly nested. An element that no word came from
// takes the word that looks at it most, if that is in no other, or is written without content, at
// its place in proportion. Tags that have no partner within their run
// stay as they are and end a sentence, as blocks do.

using Kind = MarkupToken::Kind;

// What markup costs grows with how deep it is nested and how often it has to be cut.
constexpr size_t kDeepest = 64;
constexpr int kRounds = 8;

struct Element {
  std::string opening, closing;  // no closing tag: an element without content
  size_t begin = 0, end = 0;     // bytes of the run's text
};

using Stack = std::vector<size_t>;  // elements around a word, outermost first

struct Word {
  std::string text;
  Stack around;
  std::vector<size_t> before = {};  // elements without content that stand before it
  bool spaced = true;               // a blank stands before it
};

struct Run {
  std::string text;                       // without tags and entities
  std::vector<Element> elements;          // an element stands after those around it
  std::string before = {}, after = {};    // blanks at its ends
  std::vector<std::string> between = {};  // before the first sentence, after each
  std::vector<size_t> starts = {};        // of its sentences in the text
  size_t first_sentence = 0;
};

// One blank for a run of blanks, as a browser shows it.
void append_collapsed(std::string& to, std::string_view text) {
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
    if (!blank)
      to += c;
    else if (!to.empty() && to.back() != ' ')
      to += ' ';
  }
}

// Which opening tags of a run have their closing tag in it: the index of the partner, or itself.
std::vector<size_t> partners(std::span<const MarkupToken> run) {
  std::vector<size_t> partner(run.size()), open;
  for (size_t i = 0; i < run.size(); ++i) {
    partner[i] = i;
    if (run[i].kind == Kind::opening && open.size() < kDeepest) open.push_back(i);
    if (run[i].kind != Kind::closing) continue;
    const auto match = std::find_if(open.rbegin(), open.rend(),
                                    [&](size_t o) { return run[o].name == run[i].name; });
    if (match == open.rend()) continue;
    partner[i] = *match;
    partner[*match] = i;
    open.erase(match.base() - 1, open.end());  // those opened inside it have no partner
  }
  return partner;
}

std::vector<size_t> without_partners(size_t tokens) {
  std::vector<size_t> alone(tokens);
  std::iota(alone.begin(), alone.end(), size_t{0});
  return alone;
}

Stack around(const Run& run, size_t begin, size_t end) {
  Stack stack;
  for (size_t e = 0; e < run.elements.size(); ++e) {
    const Element& element = run.elements[e];
    if (!element.closing.empty() && element.begin < end && element.end > begin) stack.push_back(e);
  }
  return stack;
}

// Where each word of a sentence begins and ends in the run's text.
std::vector<std::pair<size_t, size_t>> places_of_words(std::string_view sentence, size_t start) {
  std::vector<std::pair<size_t, size_t>> places;
  for (const std::string_view word : split_words(sentence)) {
    const size_t at = start + static_cast<size_t>(word.data() - sentence.data());
    places.emplace_back(at, at + word.size());
  }
  return places;
}

class HtmlPassage : public Passage {
 public:
  HtmlPassage(const std::string& html, const std::string& language) {
    const std::vector<MarkupToken> tokens = cut_markup(html);
    size_t begin = 0;
    const auto end_run = [&](size_t end) {
      add_run(std::span(tokens).subspan(begin, end - begin), language);
      begin = end + 1;
    };
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].kind != Kind::fixed) continue;
      end_run(i);
      fixed_.back() += tokens[i].bytes;
    }
    end_run(tokens.size());
  }

  std::string render(std::span<const Translation> translations, size_t nth) const override {
    std::string html;
    for (size_t r = 0; r < fixed_.size(); ++r) {
      html += fixed_[r];
      if (r < runs_.size()) html += write(runs_[r], words_of(runs_[r], translations, nth));
    }
    return html;
  }

 private:
  // Tags without a partner cut the run; in the last round all do.
  void add_run(std::span<const MarkupToken> tokens, const std::string& language,
               int rounds = kRounds) {
    const auto partner = rounds > 0 ? partners(tokens) : without_partners(tokens.size());
    size_t begin = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool tag = tokens[i].kind == Kind::opening || tokens[i].kind == Kind::closing;
      if (!tag || partner[i] != i) continue;
      add_balanced(tokens.subspan(begin, i - begin), language, rounds - 1);
      fixed_.back() += tokens[i].bytes;
      begin = i + 1;
    }
    add_balanced(tokens.subspan(begin), language, rounds - 1);
  }

  // A run whose tags may still lack their partners, where a tag without one stood between them.
  void add_balanced(std::span<const MarkupToken> tokens, const std::string& language, int rounds) {
    const std::vector<size_t> partner = partners(tokens);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool tag = tokens[i].kind == Kind::opening || tokens[i].kind == Kind::closing;
      if (tag && partner[i] == i) return add_run(tokens, language, rounds);
    }
    Run run;
    std::vector<size_t> open;
    for (const MarkupToken& token : tokens) {
      if (token.kind == Kind::text) append_collapsed(run.text, without_entities(token.bytes));
      if (token.kind == Kind::opening) open.push_back(run.elements.size());
      if (token.kind == Kind::opening || token.kind == Kind::lone)
        run.elements.push_back({std::string(token.bytes), "", run.text.size(), run.text.size()});
      if (token.kind != Kind::closing) continue;
      Element& element = run.elements[open.back()];
      element.closing = token.bytes;
      element.end = run.text.size();
      open.pop_back();
    }
    find_sentences(tokens, run, language);
  }

  void find_sentences(std::span<const MarkupToken> tokens, Run& run, const std::string& language) {
    const std::vector<Stretch> stretches = split_sentences(run.text, language);
    const bool any = std::ranges::any_of(stretches, [](const Stretch& s) { return s.is_sentence; });
    if (!any) {  // nothing to translate: not a byte changes
      for (const MarkupToken& token : tokens) fixed_.back() += token.bytes;
      return;
    }
    const std::string_view first = tokens.front().bytes, last = tokens.back().bytes;
    const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
    if (tokens.front().kind == Kind::text)
      run.before = first.substr(
          0, static_cast<size_t>(std::ranges::find_if_not(first, blank) - first.begin()));
    if (tokens.back().kind == Kind::text) {
      size_t end = last.size();
      while (end > 0 && blank(last[end - 1])) --end;
      run.after = last.substr(end);
    }
    run.first_sentence = sentences_.size();
    run.between.emplace_back();
    for (const Stretch& stretch : stretches) {
      if (!stretch.is_sentence) {
        run.between.back() += stretch.text;
        continue;
      }
      run.starts.push_back(static_cast<size_t>(stretch.text.data() - run.text.data()));
      sentences_.emplace_back(stretch.text);
      run.between.emplace_back();
    }
    runs_.push_back(std::move(run));
    fixed_.emplace_back();
  }

  // The words of the whole translation with the elements around them.
  std::vector<Word> words_of(const Run& run, std::span<const Translation> translations,
                             size_t nth) const {
    std::vector<Word> words;
    std::vector<bool> used(run.elements.size(), false);
    std::vector<size_t> ends;  // words at the end of each sentence
    add_signs(run, run.between[0], 0, words);
    for (size_t s = 0; s < run.starts.size(); ++s) {
      const size_t sentence = run.first_sentence + s;
      const auto places = places_of_words(sentences_[sentence], run.starts[s]);
      const Alternative* best = nth_best(translations[sentence], nth);
      if (best) add_sentence(run, places, *best, words);
      const size_t end = run.starts[s] + sentences_[sentence].size();
      add_signs(run, run.between[s + 1], end, words);
      ends.push_back(words.size());
    }
    for (const Word& word : words)
      for (const size_t e : word.around) used[e] = true;
    for (size_t e = 0; e < run.elements.size(); ++e)
      if (!used[e]) place_alone(run, e, ends, words);
    return words;
  }

  // What stands between sentences and is no blank, such as emoji.
  static void add_signs(const Run& run, std::string_view text, size_t start,
                        std::vector<Word>& words) {
    for (const auto& [begin, end] : places_of_words(text, start)) {
      const bool spaced = begin > start ? text[begin - start - 1] == ' ' : words.empty();
      words.push_back({std::string(text.substr(begin - start, end - begin)),
                       around(run, begin, end),
                       {},
                       spaced});
    }
  }

  static void add_sentence(const Run& run, std::span<const std::pair<size_t, size_t>> places,
                           const Alternative& best, std::vector<Word>& words) {
    const auto target = split_words(best.text);
    std::vector<int64_t> source(target.size(), -1);
    for (const auto& [from, to] : best.alignment)
      if (to >= 0 && to < std::ssize(target) && from >= 0 && from < std::ssize(places))
        source[static_cast<size_t>(to)] = from;
    const bool aligned = std::ranges::any_of(source, [](int64_t s) { return s >= 0; });
    int64_t last = -1;
    for (size_t i = 0; i < target.size(); ++i) {
      if (!aligned) source[i] = static_cast<int64_t>(i * places.size() / target.size());
      if (source[i] >= 0) last = source[i];
      const auto& [begin, end] = places[static_cast<size_t>(std::max<int64_t>(last, 0))];
      words.push_back({std::string(target[i]), last >= 0 ? around(run, begin, end) : Stack{}});
    }
    fill_elements(run, places, best, std::span(words).last(target.size()));
  }

  // `words` are those of the translation, `places` those of the source words.
  static void fill_elements(const Run& run, std::span<const std::pair<size_t, size_t>> places,
                            const Alternative& best, std::span<Word> words) {
    std::set<size_t> used;
    for (const Word& word : words) used.insert(word.around.begin(), word.around.end());
    for (size_t j = 0; j < std::min(places.size(), best.nearest.size()); ++j) {
      const Stack wanted = around(run, places[j].first, places[j].second);
      const int to = best.nearest[j];
      if (wanted.empty() || used.contains(wanted.back()) || to < 0 || to >= std::ssize(words))
        continue;
      Stack& now = words[static_cast<size_t>(to)].around;
      if (!std::ranges::includes(wanted, now)) continue;
      used.insert(wanted.begin(), wanted.end());
      now = wanted;
    }
  }

  static void place_alone(const Run& run, size_t element, std::span<const size_t> ends,
                          std::vector<Word>& words) {
    const size_t at = run.elements[element].begin;
    size_t s = 0;
    while (s + 1 < run.starts.size() && run.starts[s + 1] <= at) ++s;
    const size_t first = s == 0 ? 0 : ends[s - 1];
    const size_t begin = run.starts[s];
    const size_t stop = s + 1 < run.starts.size() ? run.starts[s + 1] : run.text.size();
    const double share = stop > begin && at > begin
                             ? static_cast<double>(at - begin) / static_cast<double>(stop - begin)
                             : 0;
    const size_t place =
        first + static_cast<size_t>(share * static_cast<double>(ends[s] - first) + 0.5);
    if (place >= words.size())
      words.push_back({"", {}, {element}, at > 0 && run.text[at - 1] == ' '});
    else
      words[place].before.push_back(element);
  }

  static std::string write(const Run& run, const std::vector<Word>& words) {
    std::string html = run.before;
    Stack open;
    const auto close_to = [&](size_t depth) {
      for (; open.size() > depth; open.pop_back()) html += run.elements[open.back()].closing;
    };
    bool first = true;
    for (const Word& word : words) {
      const auto same = std::ranges::mismatch(open, word.around).in1;
      close_to(static_cast<size_t>(same - open.begin()));
      if (!first && word.spaced) html += ' ';
      for (const size_t e : word.before) html += run.elements[e].opening + run.elements[e].closing;
      for (size_t e = open.size(); e < word.around.size(); ++e) {
        html += run.elements[word.around[e]].opening;
        open.push_back(word.around[e]);
      }
      html += with_entities(word.text);
      first = false;
    }
    close_to(0);
    return html + run.after;
  }

  std::vector<Run> runs_;
  std::vector<std::string> fixed_{""};  // before the first run, after each
};

}  // namespace

std::unique_ptr<Passage> html_passage(const std::string& text, const std::string& language) {
  return std::make_unique<HtmlPassage>(text, language);
}

}  // namespace fovea

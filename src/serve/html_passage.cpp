#include <unicode/uchar.h>

#include <algorithm>
#include <numeric>

#include "base/utf8.h"
#include "serve/entities.h"
#include "serve/html_run.h"
#include "serve/passage.h"
#include "serve/run_translation.h"
#include "serve/sentence_gap.h"
#include "serve/sentences.h"
#include "text/pieces.h"

namespace fovea {
namespace {

// Note [Markup]
// Block elements, comments and scripts end a sentence and stay where they are. Elements inside a
// sentence (<b>, <a>) go with its words: the text between two blocks, a run, is translated without
// its tags; each word of the translation then lies in the elements in which the source word lay
// that it comes from, as the model's attention says, or without attention in proportion. Where
// elements begin or end inside a word its translation is cut likewise, as far as signs tell where
// (word_parts.h). An element is written with those around it that it had in the source and no
// others, so that tags are always properly nested. One that no word came from
// takes the word that looks at it most, if that is in no other, or is written without content
// beside the words beside which it stood. Tags that have no partner within their run
// stay as they are and end a sentence, as blocks do. So do all tags in a context that is not
// certain (Note [Certain context]).
// Translated text is escaped and never empty. Markup that a browser ignores in the source is thus
// ignored in the translation: `MarkupDifference` compares both by a parser of HTML.
// Links that touch (<a>Home</a><a>About</a>) are a menu, whose texts are no sentence together. The
// mark of a footnote (<sup><a>[1]</a></sup>) is no word of the sentence.

using Kind = MarkupToken::Kind;

// What markup costs grows with how deep it is nested and how often it has to be cut.
constexpr size_t kDeepest = 64;
constexpr int kRounds = 8;
constexpr std::string_view kBlanks = " \t\r\n\f";

struct Run {
  Run(std::span<const MarkupToken> tokens, size_t first) : html(tokens), first_sentence(first) {}

  HtmlRun html;
  std::string before = {}, after = {};  // blanks at its ends
  std::vector<size_t> starts = {};      // of its sentences in the text
  size_t first_sentence;
};

// Whether a browser sees a character in it. If a text vanished, what follows could change: a
// browser ignores <frameset> behind text, for example.
bool is_visible(std::string_view text) {
  return text.find_first_not_of(std::string_view(" \t\r\n\v\f\0", 7)) != std::string_view::npos;
}

Alternative unchanged(const std::string& sentence) {
  Alternative same;
  same.text = sentence;
  for (int i = 0; i < static_cast<int>(split_words(sentence).size()); ++i)
    same.alignment.emplace_back(i, i);
  return same;
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

// The last token of the footnote's mark that begins with the i-th; 0 where none does.
size_t end_of_mark(std::span<const MarkupToken> tokens, size_t i) {
  constexpr size_t kMostTokens = 12, kMostBytes = 16;
  if (tokens[i].kind != Kind::opening || tokens[i].name != "sup") return 0;
  size_t bytes = 0;
  bool link = false;
  for (size_t j = i + 1; j < std::min(tokens.size(), i + kMostTokens); ++j) {
    if (tokens[j].name == "sup") return tokens[j].kind == Kind::closing && link ? j : 0;
    if (tokens[j].kind == Kind::text) bytes += tokens[j].bytes.size();
    if (tokens[j].kind == Kind::fixed || bytes > kMostBytes) return 0;
    link = link || tokens[j].name == "a";
  }
  return 0;
}

std::vector<MarkupToken> with_whole_marks(std::span<const MarkupToken> tokens) {
  std::vector<MarkupToken> all;
  for (size_t i = 0; i < tokens.size(); ++i) {
    all.push_back(tokens[i]);
    const size_t last = end_of_mark(tokens, i);
    if (last == 0) continue;
    const char* const begin = tokens[i].bytes.data();
    const std::string_view end = tokens[last].bytes;
    all.back() = {Kind::lone, {begin, static_cast<size_t>(end.data() + end.size() - begin)}};
    i = last;
  }
  return all;
}

bool begins_with_word(std::string_view html) {
  html.remove_prefix(std::min(html.find_first_not_of(kBlanks), html.size()));
  const std::string text = without_entities(html.substr(0, 64));
  return !text.empty() && u_isalnum(static_cast<UChar32>(decode_utf8(text, 0).value));
}

// Where a sentence ends because two links with words touch there: before the first tag that opens
// something after the first link.
std::vector<size_t> ends_of_links(std::span<const MarkupToken> tokens) {
  std::vector<size_t> ends;
  bool words = false;                 // in the link before
  bool closed = false, next = false;  // that link, the next one opened
  size_t place = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const MarkupToken& token = tokens[i];
    const bool link = token.name == "a" || token.name == "label";
    if (token.kind == Kind::text) {
      if (next && begins_with_word(token.bytes)) ends.push_back(place);
      words = token.bytes.find_first_not_of(kBlanks) != std::string_view::npos;
    }
    if (token.kind == Kind::text || token.kind == Kind::fixed) closed = next = false;
    if (token.kind == Kind::closing && link && words) {
      closed = true;
      place = tokens.size();
    }
    if (token.kind == Kind::opening && link) words = false;
    if (token.kind != Kind::opening || !closed) continue;
    place = std::min(place, i);
    next = next || link;
  }
  return ends;
}

class HtmlPassage : public Passage {
 public:
  HtmlPassage(const std::string& html, const PassageOptions& options) : options_(options) {
    const std::vector<MarkupToken> tokens = with_whole_marks(cut_markup(html));
    const std::vector<size_t> ends = ends_of_links(tokens);
    size_t begin = 0;
    const auto end_run = [&](size_t end) {
      add_run(std::span(tokens).subspan(begin, end - begin));
      begin = end;
    };
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool fixed = tokens[i].kind == Kind::fixed;
      if (fixed || std::ranges::binary_search(ends, i)) end_run(i);
      if (!fixed) continue;
      fixed_.back() += tokens[i].bytes;
      begin = i + 1;
    }
    end_run(tokens.size());
  }

  std::string render(std::span<const Translation> translations, size_t nth) const override {
    std::string html;
    for (size_t r = 0; r < fixed_.size(); ++r) {
      html += fixed_[r];
      if (r < runs_.size()) html += translated(runs_[r], translations, nth);
    }
    return html;
  }

  std::string before(size_t sentence) const override {
    return sentence == 0 || joins_sentences(options_.target) ? "" : " ";
  }

 private:
  // Tags without a partner cut the run; in the last round all do.
  void add_run(std::span<const MarkupToken> tokens, int rounds = kRounds) {
    const auto partner = rounds > 0 ? partners(tokens) : without_partners(tokens.size());
    size_t begin = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool tag = tokens[i].kind == Kind::opening || tokens[i].kind == Kind::closing;
      if (!tag || partner[i] != i) continue;
      add_balanced(tokens.subspan(begin, i - begin), rounds - 1);
      fixed_.back() += tokens[i].bytes;
      begin = i + 1;
    }
    add_balanced(tokens.subspan(begin), rounds - 1);
  }

  // A run whose tags may still lack their partners, where a tag without one stood between them.
  void add_balanced(std::span<const MarkupToken> tokens, int rounds) {
    const std::vector<size_t> partner = partners(tokens);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool tag = tokens[i].kind == Kind::opening || tokens[i].kind == Kind::closing;
      if (tag && partner[i] == i) return add_run(tokens, rounds);
    }
    if (!tokens.empty()) find_sentences(tokens, Run(tokens, sentences_.size()));
  }

  void find_sentences(std::span<const MarkupToken> tokens, Run run) {
    const std::string& text = run.html.text();
    for (const Stretch& stretch : split_sentences(text, options_.source, options_.limit)) {
      if (!stretch.is_sentence) continue;
      run.starts.push_back(static_cast<size_t>(stretch.text.data() - text.data()));
      sentences_.emplace_back(stretch.text);
    }
    if (run.starts.empty()) {  // nothing to translate
      for (const MarkupToken& token : tokens)
        if (token.kind == Kind::text)
          // It keeps its references. What looks like the end or the begin of a tag becomes one, so
          // that it is no tag together with what follows.
          fixed_.back() += with_entities(token.bytes, Ampersands::kept);
        else
          fixed_.back() += token.bytes;
      return;
    }
    const std::string_view first = tokens.front().bytes, last = tokens.back().bytes;
    if (tokens.front().kind == Kind::text)
      run.before = first.substr(0, first.find_first_not_of(kBlanks));
    if (tokens.back().kind == Kind::text)
      run.after = last.substr(last.find_last_not_of(kBlanks) + 1);
    runs_.push_back(std::move(run));
    fixed_.emplace_back();
  }

  std::string translated(const Run& run, std::span<const Translation> translations,
                         size_t nth) const {
    const std::string_view text = run.html.text();
    RunTranslation translation(run.html, options_.target);
    size_t done = 0;
    for (size_t s = 0; s < run.starts.size(); ++s) {
      const size_t begin = run.starts[s], number = run.first_sentence + s;
      translation.add_signs(text.substr(done, begin - done), done);
      const Alternative* best = nth_best(translations[number], nth);
      if (best && is_visible(best->text))
        translation.add_sentence(sentences_[number], begin, *best);
      else
        translation.add_sentence(sentences_[number], begin, unchanged(sentences_[number]));
      done = begin + sentences_[number].size();
    }
    translation.add_signs(text.substr(done), done);
    return run.before + translation.html() + run.after;
  }

  PassageOptions options_;
  std::vector<Run> runs_;
  std::vector<std::string> fixed_{""};  // before the first run, after each
};

}  // namespace

std::unique_ptr<Passage> html_passage(const std::string& text, const PassageOptions& options) {
  return std::make_unique<HtmlPassage>(text, options);
}

}  // namespace fovea

#include <algorithm>
#include <numeric>

#include "base/ascii.h"
#include "document/document.h"
#include "document/html_entities.h"
#include "document/html_render.h"
#include "document/html_span.h"
#include "text/sentence_gap.h"
#include "text/sentences.h"

namespace fovea {
namespace {

// Note [Markup]
// Block elements, comments and scripts end a sentence and are copied unchanged. The text between
// two such items is a run. The inline elements (<b>, <a>) of a run move with its words.
//
// The model translates a run without its tags. Each target word then gets the elements of its
// source word according to the attention of the model, or by position if there is no attention.
//
// An element is written with exactly the ancestors that it has in the source, so that tags are
// always properly nested. An element without any target word receives the word that attends to it
// most, if no other element contains that word. Otherwise it is written empty, beside the words
// next to which it was in the source.
//
// Tags without a partner in their run are copied unchanged and end a sentence, as blocks do. The
// same is true for all tags in an uncertain context (Note [Certain context]).
//
// Translated text is escaped and never empty. Hence a browser ignores in the translation the markup
// that it ignores in the source: `MarkupDifference` compares both with an HTML parser.
//
// Links that follow each other without a blank (<a>Home</a><a>About</a>) are a menu: each is a
// sentence.

using Kind = MarkupToken::Kind;

// The cost of markup grows with the depth of nesting and with the number of rounds of splitting.
constexpr size_t kMaxDepth = 64;
constexpr int kMaxRounds = 8;
constexpr std::string_view kBlanks = " \t\r\n\f";

struct Run {
  Run(std::span<const MarkupToken> tokens, size_t first) : html(tokens), first_sentence(first) {}

  HtmlRun html;
  std::string before = {}, after = {};  // white space around the run
  std::vector<size_t> starts = {};      // offsets of the sentences in the text of the run
  size_t first_sentence;
};

// Whether the text has a character that is not white space for a browser. If a translation removed
// all such text, the meaning of the markup after it could change: for example, a browser ignores
// <frameset> after text.
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

// Returns for each token of a run the index of its partner: the closing tag of an opening tag and
// vice versa. A token without a partner gets its own index.
std::vector<size_t> partners(std::span<const MarkupToken> run) {
  std::vector<size_t> partner(run.size()), open;
  for (size_t i = 0; i < run.size(); ++i) {
    partner[i] = i;
    if (run[i].kind == Kind::opening && open.size() < kMaxDepth) open.push_back(i);
    if (run[i].kind != Kind::closing) continue;
    const auto match = std::find_if(open.rbegin(), open.rend(),
                                    [&](size_t o) { return run[o].name == run[i].name; });
    if (match == open.rend()) continue;
    partner[i] = *match;
    partner[*match] = i;
    open.erase(match.base() - 1, open.end());  // tags inside this element have no partner
  }
  return partner;
}

std::vector<size_t> without_partners(size_t tokens) {
  std::vector<size_t> alone(tokens);
  std::iota(alone.begin(), alone.end(), size_t{0});
  return alone;
}

bool is_link(const MarkupToken& token) { return token.name == "a" || token.name == "label"; }

class HtmlTextDocument : public TextDocument {
 public:
  HtmlTextDocument(const std::string& html, const PassageOptions& options) : options_(options) {
    const std::vector<MarkupToken> tokens = cut_markup(html);
    size_t begin = 0;
    const auto end_run = [&](size_t end) {
      add_run(std::span(tokens).subspan(begin, end - begin));
      begin = end;
    };
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool fixed = tokens[i].kind == Kind::fixed;
      const bool next_link = i > 0 && tokens[i].kind == Kind::opening && is_link(tokens[i]) &&
                             tokens[i - 1].kind == Kind::closing && is_link(tokens[i - 1]);
      if (fixed || next_link) end_run(i);
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
  // Splits the run at the tags without a partner and adds the parts. In the last round, splits it
  // at all tags.
  void add_run(std::span<const MarkupToken> tokens, int rounds = kMaxRounds) {
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

  // Adds a part of a run. If the splitting has separated a tag from its partner, splits the part
  // again.
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
    for (const TextSpan& stretch : split_sentences(text, options_.source, options_.limit)) {
      if (!stretch.is_sentence) continue;
      run.starts.push_back(static_cast<size_t>(stretch.text.data() - text.data()));
      sentences_.emplace_back(stretch.text);
    }
    if (run.starts.empty()) {  // nothing to translate
      for (const MarkupToken& token : tokens)
        if (token.kind == Kind::text)
          // Keeps references. Escapes < and >, so that they cannot form a tag with the text that
          // follows.
          fixed_.back() += with_entities(token.bytes, AmpersandMode::kept);
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
    HtmlRunRenderer translation(run.html, options_.target);
    size_t done = 0;
    for (size_t s = 0; s < run.starts.size(); ++s) {
      const size_t begin = run.starts[s], number = run.first_sentence + s;
      translation.add_unchanged(text.substr(done, begin - done), done);
      const Alternative* best = nth_best(translations[number], nth);
      if (best && is_visible(best->text))
        translation.add_sentence(sentences_[number], begin, *best);
      else
        translation.add_sentence(sentences_[number], begin, unchanged(sentences_[number]));
      done = begin + sentences_[number].size();
    }
    translation.add_unchanged(text.substr(done), done);
    return run.before + translation.html() + run.after;
  }

  PassageOptions options_;
  std::vector<Run> runs_;
  std::vector<std::string> fixed_{""};  // markup before the first run and after each one
};

}  // namespace

std::unique_ptr<TextDocument> html_document(const std::string& text,
                                            const PassageOptions& options) {
  return std::make_unique<HtmlTextDocument>(text, options);
}

}  // namespace fovea

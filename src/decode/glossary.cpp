#include "decode/glossary.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "base/lines.h"
#include "base/utf8.h"
#include "text/tokenization.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

struct LineWord {
  size_t begin, end;
};

bool in_word(char32_t c) {
  const auto code = static_cast<UChar32>(c);
  return u_isalnum(code) || (U_GET_GC_MASK(code) & U_GC_M_MASK) != 0;
}

// Sequences of letters, marks and digits; every other character except blanks is a word, too.
std::vector<LineWord> glossary_words(std::string_view line) {
  std::vector<LineWord> words;
  bool joins = false;  // the next letter belongs to the last word
  const CodePoints points = code_points(line);
  for (auto at = points.begin(); at != points.end(); ++at) {
    const size_t begin = at.offset(), end = begin + static_cast<size_t>(at.length());
    if (u_isUWhiteSpace(static_cast<UChar32>(*at))) {
      joins = false;
      continue;
    }
    const bool letter = in_word(*at) && !is_unspaced(*at);
    if (letter && joins)
      words.back().end = end;
    else
      words.push_back({begin, end});
    joins = letter;
  }
  return words;
}

std::string_view text_of(std::string_view line, const LineWord& word) {
  return line.substr(word.begin, word.end - word.begin);
}

}  // namespace

Glossary Glossary::read(const std::string& path) {
  Glossary glossary;
  LineReader lines(path);
  for (TextLine line; lines.next(line);) {
    if (line.text.empty()) continue;
    const size_t tab = line.text.find('\t');
    check(tab != std::string_view::npos, ExitCode::data, lines.where(),
          ": there is no tab, a term, a tab and its translation are expected; add the translation");
    const std::string_view target = line.text.substr(tab + 1);
    check(target.find('\t') == std::string_view::npos, ExitCode::data, lines.where(),
          ": there are several tabs, one is expected between a term and its translation; remove ",
          "the other columns");
    check(is_utf8(line.text), ExitCode::data, lines.where(),
          ": the line is not UTF-8; convert the file");
    glossary.add(line.text.substr(0, tab), target, lines.where());
  }
  return glossary;
}

void Glossary::add(std::string_view source, std::string_view target, const std::string& where) {
  const std::vector<LineWord> words = glossary_words(source);
  check(!words.empty(), ExitCode::data, where, ": the term is empty; remove the line");
  check(!glossary_words(target).empty(), ExitCode::data, where,
        ": the translation is empty; remove the line");
  int32_t node = 0;
  for (const LineWord& word : words) {
    const auto next = static_cast<int32_t>(nodes_.size());
    const auto [child, added] =
        nodes_[node].children.try_emplace(std::string(text_of(source, word)), next);
    node = child->second;
    if (added) nodes_.emplace_back();
  }
  int32_t& index = nodes_[node].target;
  if (index < 0) {
    index = static_cast<int32_t>(targets_.size());
    targets_.emplace_back();
  }
  targets_[index] = target;
}

std::vector<GlossaryMatch> Glossary::matches(std::string_view line) const {
  const std::vector<LineWord> words = glossary_words(line);
  std::vector<GlossaryMatch> found;
  for (size_t i = 0; i < words.size();) {
    size_t next = i + 1;
    int32_t node = 0, longest = -1;
    for (size_t j = i; j < words.size(); ++j) {
      const auto child = nodes_[node].children.find(std::string(text_of(line, words[j])));
      if (child == nodes_[node].children.end()) break;
      node = child->second;
      if (nodes_[node].target < 0) continue;
      longest = nodes_[node].target;
      next = j + 1;
    }
    if (longest >= 0) found.push_back({words[i].begin, words[next - 1].end, targets_[longest]});
    i = next;
  }
  return found;
}

TermPieces term_pieces(const Vocabulary& vocabulary, std::string_view term) {
  const std::vector<int32_t> ids = vocabulary.encode(term);
  if (ids.empty() || std::ranges::find(ids, kUnk) != ids.end()) return {};
  TermPieces pieces{ids};
  const std::string_view first = vocabulary.name(ids.front());
  if (vocabulary.cut() != Segmentation::sentencepiece || !first.starts_with(kBlank)) return pieces;
  const std::string_view rest = first.substr(kBlank.size());
  std::vector<int32_t> inside(ids.begin() + 1, ids.end());
  if (!rest.empty()) {
    const int32_t id = vocabulary.id(rest);
    if (id < kSpecials) return pieces;
    inside.insert(inside.begin(), id);
  }
  if (!inside.empty()) pieces.push_back(inside);
  return pieces;
}

std::vector<TermPieces> required_terms(const std::vector<GlossaryMatch>& matches,
                                       const Vocabulary& vocabulary) {
  std::vector<TermPieces> terms;
  for (const GlossaryMatch& match : matches) {
    TermPieces term = term_pieces(vocabulary, match.target);
    if (term.empty() || std::ranges::find(terms, term) != terms.end()) continue;
    if (std::ssize(terms) == RequiredTerms::kMost) break;
    terms.push_back(std::move(term));
  }
  return terms;
}

}  // namespace fovea

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "eval/code_points.h"

namespace fovea {

// How BLEU divides a line into words, by sacreBLEU's names.
enum class BleuTokenizer {
  none,       // at white space only
  mteval13,   // 13a: WMT's default, ASCII punctuation split off
  intl,       // mteval-v14: punctuation and symbols of all scripts
  zh,         // every Chinese character a word, the rest as 13a
  chars,      // every character a word
  automatic,  // by language or script, see below; no text is tokenized with it
};

// "13a", "intl", "char", "zh", "none", "auto"; fails with Exit::usage on any other name.
BleuTokenizer bleu_tokenizer(std::string_view name);
std::string_view name_of(BleuTokenizer tokenizer);

// The tokenizer for translations into a language: zh for Chinese, 13a for languages that separate
// words by blanks, char for Japanese, Korean, Thai, Lao, Khmer and Burmese. sacreBLEU has ja-mecab
// and ko-mecab for the first two, which need MeCab. The code may have a region: zh-TW.
BleuTokenizer tokenizer_of_language(std::string_view code);

// The tokenizer for references in an unknown language, by the scripts of their letters: zh for
// Han, char for Kana, Thai, Lao, Khmer and Myanmar, 13a for all others.
BleuTokenizer tokenizer_of_text(std::span<const std::string> references);

// `tokenizer`, or tokenizer_of_text() if it is automatic.
BleuTokenizer resolved(BleuTokenizer tokenizer, std::span<const std::string> references);

// REQUIRES: tokenizer is not automatic. The line with blanks between its words.
Characters tokenize_for_bleu(BleuTokenizer tokenizer, const Characters& line);

// What tercom does to a line before it counts edits.
struct TercomOptions {
  bool normalized = false;      // unescape, split punctuation and possessives off
  bool no_punct = false;        // drop . , ? : ; ! " ( )
  bool asian_support = false;   // with the two above, also for Chinese and Japanese characters
  bool case_sensitive = false;  // otherwise lower case
};

Characters tokenize_for_ter(const TercomOptions& options, const Characters& line);

}  // namespace fovea

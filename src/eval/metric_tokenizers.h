#pragma once

#include <span>
#include <string>
#include <string_view>

#include "eval/code_points.h"

namespace fovea {

// How BLEU splits a line into words, with sacreBLEU's names.
enum class BleuTokenizer {
  none,       // only at white space
  mteval13,   // "13a", the default of WMT: splits off ASCII punctuation
  intl,       // as mteval-v14: splits off punctuation and symbols of all scripts
  zh,         // each Chinese character is a word; other text as in 13a
  chars,      // each character is a word
  automatic,  // by language or script; resolved() must replace it before use
};

// Parses "13a", "intl", "char", "zh", "none" or "auto". Throws ExitCode::usage for any other name.
BleuTokenizer bleu_tokenizer(std::string_view name);
std::string_view name_of(BleuTokenizer tokenizer);

// Returns the tokenizer for translations into a language: zh for Chinese, char for Japanese,
// Korean, Thai, Lao, Khmer and Burmese, 13a for languages that separate words by blanks. For
// Japanese and Korean sacreBLEU has ja-mecab and ko-mecab, which need MeCab. The code may have a
// region: zh-TW.
BleuTokenizer tokenizer_of_language(std::string_view code);

// Returns the tokenizer for references in an unknown language, by the scripts of their letters: zh
// for Han, char for Kana, Thai, Lao, Khmer and Myanmar, 13a for all others.
BleuTokenizer tokenizer_of_text(std::span<const std::string> references);

// Returns `tokenizer`, or the result of tokenizer_of_text() if it is automatic.
BleuTokenizer resolved(BleuTokenizer tokenizer, std::span<const std::string> references);

// Returns the line with blanks between its words. REQUIRES: tokenizer is not automatic.
Characters tokenize_for_bleu(BleuTokenizer tokenizer, const Characters& line);

// The options of tercom for the preprocessing of a line.
struct TercomOptions {
  bool normalized = false;      // unescape, split off punctuation and possessives
  bool no_punct = false;        // remove . , ? : ; ! " ( )
  bool asian_support = false;   // the options above also apply to Chinese and Japanese
  bool case_sensitive = false;  // false: converts to lower case
};

Characters tokenize_for_ter(const TercomOptions& options, const Characters& line);

}  // namespace fovea

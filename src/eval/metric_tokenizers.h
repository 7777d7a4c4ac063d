#pragma once

#include <span>
#include <string>
#include <string_view>

#include "eval/code_points.h"

namespace fovea {

// How BLEU splits a line into words. The comments have the names that sacreBLEU uses.
enum class BleuTokenizer {
  none,       // only at white space
  mteval13,   // "13a", the default of WMT: splits off ASCII punctuation
  intl,       // like mteval-v14: splits off punctuation and symbols of all scripts
  zh,         // each Chinese character is a word; splits other text like 13a
  chars,      // each character is a word
  automatic,  // chosen by language or script; call resolved() before use
};

// Parses "13a", "intl", "char", "zh", "none" or "auto". For any other name throws ExitCode::usage.
BleuTokenizer bleu_tokenizer(std::string_view name);
std::string_view name_of(BleuTokenizer tokenizer);

// Returns the tokenizer for translations into a language. It is zh for Chinese, char for Japanese,
// Korean, Thai, Lao, Khmer and Burmese, and 13a for languages that separate words by blanks. (For
// Japanese and Korean, sacreBLEU has ja-mecab and ko-mecab, which need MeCab.) The code may have a
// region, such as zh-TW.
BleuTokenizer tokenizer_of_language(std::string_view code);

// If the language of references is not known, returns the tokenizer for the scripts of their
// letters: zh for Han, char for Kana, Thai, Lao, Khmer and Myanmar, and 13a for all others.
BleuTokenizer tokenizer_of_text(std::span<const std::string> references);

// If `tokenizer` is automatic, returns tokenizer_of_text(references), otherwise returns
// `tokenizer`.
BleuTokenizer resolved(BleuTokenizer tokenizer, std::span<const std::string> references);

// Returns the line with blanks between its words. REQUIRES: tokenizer is not automatic.
Characters tokenize_for_bleu(BleuTokenizer tokenizer, const Characters& line);

// The options with which tercom preprocesses a line.
struct TercomOptions {
  bool normalized = false;      // unescapes XML; splits off punctuation and possessives
  bool no_punct = false;        // removes . , ? : ; ! " ( )
  bool asian_support = false;   // the two options above also apply to Chinese and Japanese
  bool case_sensitive = false;  // false: converts text to lower case
};

Characters tokenize_for_ter(const TercomOptions& options, const Characters& line);

}  // namespace fovea

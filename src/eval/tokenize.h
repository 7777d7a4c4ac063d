#pragma once

#include <string_view>

#include "eval/characters.h"

namespace fovea {

// How BLEU divides a line into words, by sacreBLEU's names.
enum class BleuTokenizer {
  none,      // at white space only
  mteval13,  // 13a: WMT's default, ASCII punctuation split off
  intl,      // mteval-v14: punctuation and symbols of all scripts
  zh,        // every Chinese character a word, the rest as 13a
  chars,     // every character a word
};

// "13a", "intl", "char", "zh", "none"; fails with Exit::usage on any other name.
BleuTokenizer bleu_tokenizer(std::string_view name);
std::string_view name_of(BleuTokenizer tokenizer);

// The line with blanks between its words.
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

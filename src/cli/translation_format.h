#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "decode/translate.h"

namespace fovea {

enum class TranslationFormat { text, jsonl, marian, fairseq };

// One line of input: its number from 0, its text, and what else its JSON object held.
struct InputLine {
  int64_t id = 0;
  std::string text;
  nlohmann::ordered_json fields = nullptr;  // an object where the input was JSON
};

// Reads an input line of JSON: an object with the text in "source" (or "text"). `where` names the
// line in errors, which are Exit::data.
InputLine parse_json_line(const std::string& line, int64_t id, const std::string& where);

// What to print besides the translation.
struct Details {
  bool alignment = false, n_best = false;
};

// The translation of one line, line ends included. In `text` and `jsonl` this is exactly one line.
std::string format_translation(TranslationFormat format, const InputLine& line,
                               const Translation& translation, const Details& details);

// Six decimals at most: what a reader of JSON can use of a float.
double rounded(double value, double digits = 1e6);

}  // namespace fovea

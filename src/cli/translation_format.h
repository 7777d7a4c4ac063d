#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "decode/translator.h"

namespace fovea {

enum class TranslationFormat { text, jsonl, marian, fairseq };

// A line of input: its number from 0, its text, and its JSON object.
struct InputLine {
  int64_t id = 0;
  std::string text;
  nlohmann::ordered_json fields = nullptr;  // the whole object if the input is JSON
  std::string prefix = {};                  // the beginning of its translation
  std::vector<std::string> terms = {};      // what its translation has to contain
};

// Parses a line of JSON: an object with the text in "source" (or "text"), and perhaps "prefix" and
// "terms". Throws ExitCode::data with a message that begins with `where`.
InputLine parse_json_line(const std::string& line, int64_t id, const std::string& where);

// The details that the output has besides the translation.
struct OutputDetails {
  bool alignment = false, n_best = false;
};

// Returns the translation of a line in the given format, with line ends. In the formats `text` and
// `jsonl` it is exactly one line.
std::string format_translation(TranslationFormat format, const InputLine& line,
                               const Translation& translation, const OutputDetails& details);

// Rounds to a multiple of 1 / digits. The default keeps six decimals, about the precision of a
// float.
double rounded(double value, double digits = 1e6);
nlohmann::ordered_json rounded_list(std::span<const float> values, double digits = 1e6);

// Returns the object as one line. Bytes that are not UTF-8 become U+FFFD.
std::string json_line(const nlohmann::ordered_json& object);

}  // namespace fovea

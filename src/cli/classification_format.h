#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "decode/classifier.h"
#include "view/terminal.h"

namespace fovea {

// A text to classify, with the data of its input line.
struct ClassificationItem {
  ClassificationInput input;
  std::string gold = {};                    // the correct label; empty if the input has none
  std::string where = {};                   // "test.txt:7", for messages
  nlohmann::ordered_json fields = nullptr;  // the JSON object of the line
};

// The model of a command, and the question that it asks about every text; "" if each line has its
// own question.
struct QuestionRule {
  LabelKind kind = LabelKind::label;
  std::string question = {};

  bool from_lines() const { return kind == LabelKind::answer && question.empty(); }
};

// Parses a line of text. If each line has its own question, the text is followed by a tab and the
// question. Throws ExitCode::data if the question is missing, unless the line is blank.
ClassificationItem parse_text_item(const std::string& line, const QuestionRule& rule,
                                   const std::string& where);
// Parses a line with a JSON object, whose keys are "text" or "source", and "question".
ClassificationItem parse_json_item(const std::string& line, const QuestionRule& rule,
                                   const std::string& where);

// Returns a line with label, probability and attended words. If `shades` is null, these are the
// words with the largest weights, otherwise all words, shaded by their weights. An empty text gives
// an empty line.
std::string classification_text(const ClassificationResult& result, const TerminalOptions* shades);
// Returns the result as a line of JSON. `id` is used if the input has none.
std::string classification_json(const ClassificationItem& item, const ClassificationResult& result,
                                LabelKind kind, int64_t id);

}  // namespace fovea

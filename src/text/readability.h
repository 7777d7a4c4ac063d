#pragma once

#include <span>
#include <string>
#include <vector>

#include "text/language_detector.h"
#include "text/vocabulary.h"

namespace fovea {

// A warning that a model may not be able to read a text, because of its characters or its language.
struct ReadingWarning {
  enum class Kind {
    unknown_characters,  // some of the text is unknown to the vocabulary
    unreadable,          // more than half of the text is unknown
    other_language       // the model reads another language, with confidence kCertain
  };
  Kind kind;
  VocabularyCoverage coverage = {};  // of unknown_characters and unreadable
  DetectedLanguage detected = {};    // of other_language

  const char* code() const;  // the name of the kind
};

// "6 of 6 characters are unknown to this model: 我 是 一 个 学"
std::string describe(const ReadingWarning& warning, const Vocabulary& vocabulary);
// "the text looks like German, and the model reads English"
std::string describe_language(const DetectedLanguage& detected, const std::string& language);

// Returns at most one warning about units of the sentences for which the vocabulary has no pieces.
std::vector<ReadingWarning> coverage_warnings(const Vocabulary& vocabulary,
                                              std::span<const std::string> sentences);

// Returns the language of a text; kUndetermined if it is a guess, or if names may be the only
// evidence, as in "I know Jürgen Müller."
DetectedLanguage language_despite_names(std::string_view text);

// Returns a warning if a text is in another language than `language`, the one that the model reads.
// None if `language` is "" or cannot be detected.
std::vector<ReadingWarning> language_warnings(std::string_view text, const std::string& language);

}  // namespace fovea

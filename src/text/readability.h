#pragma once

#include <span>
#include <string>
#include <vector>

#include "text/language_detector.h"
#include "text/vocabulary.h"

namespace fovea {

// A warning that a model may not be able to read a text, because of its characters or its language.
// A unit is a character or, if the vocabulary has whole words, a word.
struct ReadingWarning {
  enum class Kind {
    unknown_characters,  // the vocabulary has no pieces for some units
    unreadable,          // more than half of the units have no piece or only byte pieces
    other_language,      // the model reads another language, with confidence kCertain
    not_copied           // units are missing in the translation, see copy_warnings()
  };
  Kind kind;
  VocabularyCoverage coverage = {};    // if unknown_characters or unreadable
  DetectedLanguage detected = {};      // if other_language
  std::vector<std::string> lost = {};  // if not_copied: the distinct missing units

  const char* code() const;  // the name of the kind
};

// The message of a warning: "6 of 6 characters are unknown to this model: 我 是 一 个 学"
std::string describe(const ReadingWarning& warning, const Vocabulary& vocabulary);
// The message about another language: "the text looks like German, and the model reads English"
std::string describe_language(const DetectedLanguage& detected, const std::string& language);

// Returns at most one warning about units of the sentences for which the vocabulary has no pieces.
std::vector<ReadingWarning> coverage_warnings(const Vocabulary& vocabulary,
                                              std::span<const std::string> sentences);

// Returns at most one warning about units that are missing in the translation of their sentence. It
// concerns units without a piece, and letters whose script differs from most letters of the
// sentence. There is no warning if the sentences are unreadable, because coverage_warnings()
// reports this. REQUIRES: there is one translation for each sentence.
std::vector<ReadingWarning> copy_warnings(const Vocabulary& vocabulary,
                                          std::span<const std::string> sentences,
                                          std::span<const std::string> translations);
// The message of a warning of copy_warnings(): "the translation lacks 2 characters of the text: €
// ☃"
std::string describe_lost(const ReadingWarning& warning, const Vocabulary& vocabulary);

// Returns the language of a text. Returns kUndetermined if the language is a guess, or if names may
// be the only evidence, as in "I know Jürgen Müller."
DetectedLanguage language_despite_names(std::string_view text);

// Returns a warning if a text is in another language than `language`, which the model reads.
// Returns no warning if detect_language() does not know `language`, or if it is "".
std::vector<ReadingWarning> language_warnings(std::string_view text, const std::string& language);

}  // namespace fovea

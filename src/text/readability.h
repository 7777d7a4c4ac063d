#pragma once

#include <span>
#include <string>
#include <vector>

#include "text/detector.h"
#include "text/vocabulary.h"

namespace fovea {

// What may be wrong with a text for a model, by its vocabulary and its language.
struct ReadingWarning {
  enum class Kind {
    unknown_characters,  // some of the text is unknown to the vocabulary
    unreadable,          // more than half of it is
    other_language       // it is in another language than the model reads, with kCertain confidence
  };
  Kind kind;
  Coverage coverage = {};  // of unknown_characters and unreadable
  Detected detected = {};  // of other_language

  const char* code() const;  // the name of the kind
};

// "6 of 6 characters are unknown to this model: 我 是 一 个 学"
std::string describe(const ReadingWarning& warning, const Vocabulary& vocabulary);
// "the text looks like German, and the model reads English"
std::string describe_language(const Detected& detected, const std::string& language);

// At most one warning of what the vocabulary has no pieces for, in all of the sentences.
std::vector<ReadingWarning> coverage_warnings(const Vocabulary& vocabulary,
                                              std::span<const std::string> sentences);

// The language of a text; kUndetermined if it is a guess, or if names may be all the evidence, as
// in "I know Jürgen Müller."
Detected language_despite_names(std::string_view text);

// A warning where a text is in another language than `language`, that of the model; none where that
// is "" or one that cannot be detected.
std::vector<ReadingWarning> language_warnings(std::string_view text, const std::string& language);

}  // namespace fovea

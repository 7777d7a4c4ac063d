#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/translator.h"
#include "text/sentences.h"

namespace fovea {

// The options for splitting a text into sentences: the language codes of the text and of its
// translation, "" if unknown, and the maximum length of a sentence. If the source language is
// unknown, no abbreviations are recognized.
struct PassageOptions {
  PassageOptions(const char* source_language) : source(source_language) {}
  PassageOptions(std::string source_language, std::string target_language = "",
                 SentenceLimit longest = {})
      : source(std::move(source_language)), target(std::move(target_language)), limit(longest) {}

  std::string source, target;
  SentenceLimit limit;
};

// A text of a request, split into the sentences that a model translates. It also assembles the
// translated text from their translations.
class TextDocument {
 public:
  virtual ~TextDocument() = default;
  const std::vector<std::string>& sentences() const { return sentences_; }
  // Returns the translation of the text that consists of the nth best translations of its
  // sentences, counted from 0. If a sentence has fewer translations, its last one is used.
  // REQUIRES: one translation per sentence.
  virtual std::string render(std::span<const Translation> translations, size_t nth) const = 0;
  // Returns the text between the translations of the previous sentence and of this one, as far as
  // it is known before both sentences are translated.
  virtual std::string before(size_t sentence) const = 0;

 protected:
  std::vector<std::string> sentences_;
};

// Returns the nth best translation of a sentence, counted from 0, or the last one if there are
// fewer. Returns null if the search found none.
const Alternative* nth_best(const Translation& translation, size_t nth);

// Returns a document of plain text. translated_gap() determines the text between sentences.
std::unique_ptr<TextDocument> plain_document(const std::string& text,
                                             const PassageOptions& options);

// Returns a document of HTML or XML: see Note [Markup]. If a translation has no alignment, its
// words are assigned to elements in proportion to their positions.
std::unique_ptr<TextDocument> html_document(const std::string& text, const PassageOptions& options);

}  // namespace fovea

#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/translate.h"
#include "serve/sentences.h"

namespace fovea {

// The languages of a text and its translation, by their codes; "": unknown. Unknown source
// languages have no abbreviations.
struct PassageOptions {
  PassageOptions(const char* source_language) : source(source_language) {}
  PassageOptions(std::string source_language, std::string target_language = "",
                 SentenceLimit longest = {})
      : source(std::move(source_language)), target(std::move(target_language)), limit(longest) {}

  std::string source, target;
  SentenceLimit limit;
};

// One text of a request, cut into the sentences that a model translates, and put together again
// from their translations.
class Passage {
 public:
  virtual ~Passage() = default;
  const std::vector<std::string>& sentences() const { return sentences_; }
  // The n-th best translation of the whole; a sentence that has fewer gives its last.
  // REQUIRES: one translation per sentence.
  virtual std::string render(std::span<const Translation> translations, size_t nth) const = 0;
  // The text before the translation of a sentence, as far as it is known before both sentences
  // around it are translated.
  virtual std::string before(size_t sentence) const = 0;

 protected:
  std::vector<std::string> sentences_;
};

// The best, n-th best, … translation of one sentence; null where search found none.
const Alternative* nth_best(const Translation& translation, size_t nth);

// Plain text. The text between sentences stays, as translated_gap() defines it.
std::unique_ptr<Passage> plain_passage(const std::string& text, const PassageOptions& options);

// HTML (or XML): see Note [Markup]. Words of translations without alignment have their elements in
// proportion.
std::unique_ptr<Passage> html_passage(const std::string& text, const PassageOptions& options);

}  // namespace fovea

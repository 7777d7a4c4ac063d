#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/translate.h"

namespace fovea {

// One text of a request, cut into the sentences that a model translates, and put together again
// from their translations.
class Passage {
 public:
  virtual ~Passage() = default;
  const std::vector<std::string>& sentences() const { return sentences_; }
  // The n-th best translation of the whole; a sentence that has fewer gives its last.
  // REQUIRES: one translation per sentence.
  virtual std::string render(std::span<const Translation> translations, size_t nth) const = 0;

 protected:
  std::vector<std::string> sentences_;
};

// The best, n-th best, … translation of one sentence; null where search found none.
const Alternative* nth_best(const Translation& translation, size_t nth);

// Plain text: line ends and blanks between sentences stay as they are.
std::unique_ptr<Passage> plain_passage(const std::string& text, const std::string& language);

// HTML (or XML): see Note [Markup]. Words of translations without alignment have their elements in
// proportion.
std::unique_ptr<Passage> html_passage(const std::string& text, const std::string& language);

}  // namespace fovea

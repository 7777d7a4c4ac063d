#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "document/document.h"

namespace fovea {

// Lines of plain text, each split into sentences in the same way as in `fovea serve`. It also joins
// the translations of the sentences.
class PlainTextLines {
 public:
  PlainTextLines(std::span<const std::string> lines, const PassageOptions& options);  // UTF-8

  const std::vector<std::string>& sentences() const { return sentences_; }
  const std::vector<size_t>& lines() const { return lines_; }  // line of each sentence, from 0

  // Returns the best translation of each line. Line ends between sentences become spaces, and white
  // space at both ends of a line is removed. translated_gap() determines the other white space.
  // REQUIRES: one translation per sentence.
  std::vector<std::string> join(std::span<const Translation> translations) const;

 private:
  std::vector<std::unique_ptr<TextDocument>> documents_;
  std::vector<std::string> sentences_;
  std::vector<size_t> lines_;
};

}  // namespace fovea

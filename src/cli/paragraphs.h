#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "serve/passage.h"

namespace fovea {

// Lines that may hold several sentences, cut as `fovea serve` cuts texts, and put together again.
class Paragraphs {
 public:
  Paragraphs(std::span<const std::string> lines, const PassageOptions& options);  // UTF-8

  const std::vector<std::string>& sentences() const { return sentences_; }
  const std::vector<size_t>& lines() const { return lines_; }  // of the sentences, from 0

  // A line for each line, of the best translations. Line ends between sentences become blanks, and
  // there are no blanks at the ends; see translated_gap() for other blanks. REQUIRES: one
  // translation per sentence.
  std::vector<std::string> join(std::span<const Translation> translations) const;

 private:
  std::vector<std::unique_ptr<Passage>> passages_;
  std::vector<std::string> sentences_;
  std::vector<size_t> lines_;
};

}  // namespace fovea

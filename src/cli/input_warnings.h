#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/log.h"
#include "decode/model_bundle.h"

namespace fovea {

// A checker of input. It warns about lines with characters that are not in the vocabulary of the
// model, about text that is not in the source language of the model, and about characters that are
// lost in the translation.
class InputWarnings {
 public:
  explicit InputWarnings(const ModelBundle& bundle);

  // Checks consecutive lines of the input `name`. `first` is the number of the first line.
  void check_lines(std::span<const std::string> lines, const std::string& name, int64_t first);
  // Checks the translations of lines that check_lines() has checked.
  void check_translations(std::span<const std::string> lines,
                          std::span<const std::string> translations, const std::string& name,
                          int64_t first);

 private:
  std::string language_warning(std::span<const std::string> lines) const;

  Vocabulary vocabulary_;
  std::string language_;  // source language of the model; "" if unknown
  std::string warned_;    // the last input that got a warning about its language
  LineWarnings lines_, lost_;
};

}  // namespace fovea

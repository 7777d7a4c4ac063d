#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/log.h"
#include "decode/package.h"

namespace fovea {

// Warns about input that a model cannot read: lines with characters that its vocabulary does not
// have, and text in another language.
class InputWarnings {
 public:
  explicit InputWarnings(const Package& package);

  // Looks at lines that follow each other in `name`, of which the first has this number.
  void look(std::span<const std::string> lines, const std::string& name, int64_t first);

 private:
  std::string language_warning(std::span<const std::string> lines) const;

  Vocabulary vocabulary_;
  std::string language_;  // that the model reads; "" where that is unknown
  std::string warned_;    // the input whose language was reported last: once is enough
  LineWarnings lines_;
};

}  // namespace fovea

#pragma once

#include <string>

#include "base/lines.h"

namespace fovea {

// Throws ExitCode::usage if both files are standard input, or the output is one of them.
void check_pair_files(const std::string& source, const std::string& target,
                      const std::string& output);

// A reader of two files with the same number of lines: sentences and their translations.
class LinePairs {
 public:
  LinePairs(const std::string& source, const std::string& target)
      : sources(LineReader::once(source)), targets(LineReader::once(target)) {}

  // Reads the next pair into `source` and `target`. Returns false at the end. If one file is
  // longer, throws ExitCode::data with the first line that has no partner.
  bool next();

  TextLine source, target;
  LineReader sources, targets;
};

}  // namespace fovea

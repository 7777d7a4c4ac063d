#include "cli/line_pairs.h"

#include "base/atomic_output.h"
#include "base/check.h"

namespace fovea {

void check_pair_files(const std::string& source, const std::string& target,
                      const std::string& output) {
  check(source != "-" || target != "-", ExitCode::usage,
        "only one of the two files can be standard input");
  check_not_overwritten(source, output);
  check_not_overwritten(target, output);
}

bool LinePairs::next() {
  const bool more = sources.next(source), matched = targets.next(target);
  check(more == matched, ExitCode::data, (more ? sources : targets).where(),
        ": no matching line in ", (more ? targets : sources).name(),
        "; both files must have the same number of lines");
  return more;
}

}  // namespace fovea

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/file_bytes.h"

namespace fovea {

// A lexical shortlist of Marian and Bergamot (lex.*.bin): for each source piece, the target pieces
// that can translate it. A sentence's candidates are the pieces with ids below `frequent` and the
// targets of its source pieces.
struct LexicalShortlist {
  uint64_t frequent = 0;          // number of the most frequent target pieces
  uint64_t best = 0;              // the most targets that a source piece was given
  std::vector<uint64_t> offsets;  // of the targets of each source piece; the last is the end
  std::vector<uint32_t> targets;  // of one source piece: increasing

  size_t sources() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  // REQUIRES: source < sources().
  std::span<const uint32_t> targets_of(size_t source) const;
};

// Reads the binary format and checks its checksum. Every error is ExitCode::model. The caller
// compares sources() and the targets with its vocabularies.
LexicalShortlist read_shortlist(const FileBytes& file);

// The bytes of the binary format. REQUIRES: the shortlist is consistent.
std::string format_shortlist(const LexicalShortlist& shortlist);

}  // namespace fovea

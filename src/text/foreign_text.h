#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/foreign_segmentation.h"
#include "text/foreign_vocabulary.h"

namespace fovea {

// The content of a vocabulary file of version 2 (docs/formats.md), without the special pieces.
std::string foreign_text(const PieceOrder& order, const ForeignSegmentation& segmentation);

// The merges of a `codes` file of subword-nmt, version 0.1 or 0.2.
ForeignSegmentation read_codes(std::string_view codes, const std::string& name);

}  // namespace fovea

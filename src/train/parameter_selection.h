#pragma once

#include <string>
#include <vector>

#include "nn/params.h"
#include "train/optimizer.h"

namespace fovea {

// Whether a name fits a pattern, in which `*` stands for any characters and `?` for any one.
bool fits_pattern(std::string_view name, std::string_view pattern);

// Which parameters of the store have a name that fits one of the patterns of a setting. Throws
// ExitCode::data for a pattern that fits no name; the message has the most similar ones.
std::vector<bool> select_parameters(const ParameterStore& store,
                                    const std::vector<std::string>& patterns, const char* setting);

// The values of the selected parameters, as few ranges.
std::vector<StoreRange> ranges_of(const ParameterStore& store, const std::vector<bool>& selected);

}  // namespace fovea

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "importer/foreign_settings.h"
#include "importer/weight_mapping.h"
#include "models/model_config.h"

namespace fovea {

// The sinusoids that a stored table [rows, size] contains, and the position of its first row. No
// value if the table contains anything else.
struct SinusoidTableKind {
  Positions positions;
  int64_t first_position;
};
std::optional<SinusoidTableKind> recognise_sinusoids(const std::vector<float>& table, int64_t size);

// Some files store the table of sinusoids that the program computes. If the tensor exists, requires
// that it contains the positions of the configuration.
void check_position_table(WeightMapping& weights, const std::string& tensor,
                          const ModelConfig& model);

// The function of a name, in the terms of Hugging Face; no value if Fovea does not have it.
std::optional<Function> activation_named(const std::string& name);
// The function that a setting names.
Function foreign_activation(const ForeignSettings& settings, const char* key,
                            const std::string& otherwise);

}  // namespace fovea

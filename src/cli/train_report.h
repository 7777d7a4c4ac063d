#pragma once

#include <string>

#include "tensor/device.h"
#include "train/cost_estimate.h"
#include "train/train_options.h"

namespace fovea {

// Returns shell commands that use a model, one per line. `sentence` is an example for a model that
// translates. It must not need escapes between double quotes.
std::string usage_of_model(const std::string& directory, TaskKind task,
                           const std::string& sentence);
// The same for an adapter.
std::string usage_of_adapter(const std::string& base, const std::string& adapter,
                             const std::string& sentence);

// Returns the lines of --dry-run: parameters, batches, memory and time.
std::string estimate_text(const CostEstimate& cost, const TrainOptions& options);

// Returns lines with ways to shorten a training that takes more than an hour, or "" for a shorter
// training.
std::string ways_to_shorten(const CostEstimate& cost, const TrainOptions& options, Device device);

}  // namespace fovea

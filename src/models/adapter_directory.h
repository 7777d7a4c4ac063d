#pragma once

#include <string>

#include "base/settings.h"
#include "models/low_rank_adapter.h"

namespace fovea {

// An adapter directory contains adapter.safetensors (A and B of each target, F32, with checksums)
// and config.yml (an AdapterConfig under `adapter:`). It belongs to one model directory, its base.
inline constexpr const char* kAdapterFile = "adapter.safetensors";

// The description of an adapter: its size and its base.
struct AdapterConfig {
  std::string base;         // the directory of the base model when the adapter was trained
  std::string fingerprint;  // of the weights of the base: see fingerprint_of()
  AdapterSize size;

  void describe(Settings& s);
};

// The base model in `directory`, for an adapter of this size. ExitCode::model if it has no weights.
AdapterConfig adapter_of(const std::string& directory, const AdapterSize& size);

// Writes both files, each atomically, to a directory that exists. Fails with ExitCode::diverged if
// a value is not finite.
void save_adapter(const std::string& directory, const AdapterConfig& config,
                  const LowRankAdapter& adapter);

// Reads the values of a directory into an adapter of the same size and targets.
void load_adapter(const std::string& directory, const LowRankAdapter& adapter);

// Adds the adapter in `directory` to the weights of its base, which are those of the model
// directory `base`. Errors are ExitCode::model and name the file, the tensor and the remedy; a base
// with other weights than in training is one.
void merge_adapter(const std::string& directory, const std::string& base,
                   const ParameterStore& model);

}  // namespace fovea

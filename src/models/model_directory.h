#pragma once

#include <memory>
#include <string>

#include "base/safetensors.h"
#include "models/model_config.h"

namespace fovea {

// A model directory contains model.safetensors (models/stored_weights.h), config.yml (a ModelConfig
// under `model:`), the vocabulary and a README.md. The functions in this file read and write
// model.safetensors and config.yml. decode/model_bundle.h adds the vocabulary.
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kConfigFile = "config.yml";

// Writes model.safetensors and, if it changed, config.yml, each atomically. `stored` is F32, BF16
// or I8. If the directory does not exist, creates it. If the system refuses, throws
// ExitCode::files; if a weight is not finite, throws ExitCode::diverged.
void save_model(const std::string& directory, const ModelConfig& config,
                const ParameterStore& parameters, StoredType stored = StoredType::F32);

// Writes config.yml atomically, if it changes.
void save_config(const std::string& directory, const ModelConfig& config);

// Reads and checks config.yml. Errors are ExitCode::model and name the file, line and key.
ModelConfig load_config(const std::string& directory);

// A checksum over the names, types, shapes and bytes of all tensors of a file of weights.
uint32_t fingerprint_of(const SafetensorsFile& file);

// The path of the weights file of a model directory. Fails with ExitCode::model if there is none.
std::string weights_file(const std::string& directory);

struct LoadedModel {
  ModelConfig config;
  std::unique_ptr<Model> model;
};

// Reads and checks a model. The file must contain exactly the parameters of the configuration, with
// their shapes. Checksums must match, and every weight must be finite. Memory for the weights is
// allocated only after the checks of the file's header. Errors are ExitCode::model and name the
// file, the tensor, the value found and the remedy.
LoadedModel load_model(const std::string& directory, ElementType type = ElementType::f32,
                       Device device = Cpu{});

// Writes a small file atomically, unless it has this text already.
void write_if_changed(const std::string& path, const std::string& text);

}  // namespace fovea

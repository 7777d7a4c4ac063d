#pragma once

#include <memory>
#include <string>

#include "base/safetensors.h"
#include "models/config.h"

namespace fovea {

// A model directory holds model.safetensors (one tensor per parameter, F32 or BF16, with
// checksums), config.yml (what ModelConfig describes, under `model:`), the vocabulary and a
// README.md. This file knows the first two; decode/package.h adds the vocabulary.
inline constexpr const char* kWeightsFile = "model.safetensors";
inline constexpr const char* kConfigFile = "config.yml";

// Writes both files, each whole or not at all; config.yml only where it changed. `stored` is F32
// or BF16 (rounded to nearest even). The directory is made where it does not exist. Exit::files
// where the system refuses, Exit::diverged where a weight is not finite.
void save_model(const std::string& directory, const ModelConfig& config,
                const ParameterStore& parameters, StoredType stored = StoredType::F32);

// What config.yml says, checked. Any fault is Exit::model and names file, line and key.
ModelConfig load_config(const std::string& directory);

// Where a model directory has its weights. Exit::model where there are none.
std::string weights_file(const std::string& directory);

struct LoadedModel {
  ModelConfig config;
  std::unique_ptr<Model> model;
};

// Reads and checks a model: every parameter of the configuration must be there with its shape and
// nothing else, checksums must hold, every weight must be finite. Nothing of the model's size is
// allocated before the file's header fits the configuration. Any fault is Exit::model and names
// file and tensor, what was found and what to do.
LoadedModel load_model(const std::string& directory, Type type = Type::f32, Device device = Cpu{});

// Copies the tensors of a file into the parameters of the same names, checked as load_model does.
void load_parameters(const SafetensorsFile& file, const ParameterStore& parameters);

}  // namespace fovea

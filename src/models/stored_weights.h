#pragma once

#include <string>

#include "base/safetensors.h"
#include "nn/params.h"

namespace fovea {

// The parameters of a model in a safetensors file, one tensor per parameter.
//
// Note [Stored bytes]
// A file stores each parameter as F32, as BF16 (rounded to nearest even), or as I8. For I8 each row
// of a matrix W [out, in] has a scale, which the tensor NAME/scale (F32 [out]) contains:
//   W_jk ≈ t_j q_jk,  t_j = max_k |W_jk| / 127,  q_jk in −127 … 127
// int8 products round the weights in the same way (Note [Eight bits] in gemm/gemm_int8_cpu.cpp). So
// with --precision int8, a model translates the same before and after it was stored as I8.
// Parameters that are not matrices stay F32.

// Writes the file atomically, with checksums. `stored` is F32, BF16 or I8. If a weight is not
// finite, throws ExitCode::diverged.
void save_parameters(const std::string& path, const ParameterStore& parameters,
                     StoredType stored = StoredType::F32);

// Checks that the header of the file lists exactly these parameters, with their shapes. Does not
// read weights. Errors are ExitCode::model and name the file, the tensor and the remedy.
void check_parameters(const SafetensorsFile& file, const ParameterStore& parameters);

// Copies the tensors of a file into the parameters of the same names. Checks the header and the
// checksums, and that every weight is finite.
void load_parameters(const SafetensorsFile& file, const ParameterStore& parameters);

}  // namespace fovea

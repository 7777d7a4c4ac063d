#pragma once

#include <optional>
#include <string_view>

#include "base/safetensors.h"

namespace fovea {

// What a class or function of Python means for the reader.
enum class PickleGlobal {
  ordered_dict,
  namespace_class,    // argparse.Namespace: a dictionary
  rebuild_tensor,     // (storage, offset, shape, strides, …)
  rebuild_parameter,  // (tensor, …)
  storage_class,
  ignored,  // its results have no meaning for a model
};

struct PickleGlobalRow {
  std::string_view module, name;
  PickleGlobal meaning;
  StoredType type = StoredType::F32;  // of a storage class
};

// nullptr if the reader does not know the name.
const PickleGlobalRow* find_pickle_global(std::string_view module, std::string_view name);

}  // namespace fovea

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/safetensors.h"

namespace fovea {

enum class PickleKind {
  none,
  boolean,
  integer,
  number,
  text,
  bytes,
  tuple,
  list,
  dictionary,
  global,  // a class or function that the reader knows
  storage,
  tensor,
  ignored,  // an object without meaning for a model, for example an array of NumPy
};

// A value of a pickle. Values refer to others by their numbers, so that shared and nested values
// need no recursion.
struct PickleNode {
  PickleKind kind = PickleKind::none;
  int64_t integer = 0;  // of boolean and integer; index of text, storage, tensor, global
  double number = 0;
  std::vector<uint32_t> items;  // of tuple and list; of a dictionary: key, value, key, value …
};

// The values of a tensor of PyTorch are in a storage. Tensors can share it.
struct PickleStorage {
  std::string key;
  StoredType type;
  uint64_t elements;
};

struct PickleTensor {
  size_t storage;
  uint64_t offset;  // in elements, like the strides
  std::vector<int64_t> shape;
  std::vector<uint64_t> strides;
};

// The values of one or several pickles.
struct PickleContent {
  std::deque<PickleNode> nodes;
  std::vector<std::string> texts;
  std::vector<PickleStorage> storages;
  std::map<std::string, size_t> storage_of_key;
  std::vector<PickleTensor> tensors;

  const std::string& text(const PickleNode& node) const {
    return texts[static_cast<size_t>(node.integer)];
  }
};

}  // namespace fovea

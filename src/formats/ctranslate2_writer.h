#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/tensor_archive.h"

namespace fovea {

class AtomicFile;

// A writer of CTranslate2's model.bin, binary version 6. It writes variables and aliases in the
// order of their names, as CTranslate2's own converter does.
class CTranslate2Writer {
 public:
  CTranslate2Writer(std::string spec, uint32_t revision)
      : spec_(std::move(spec)), revision_(revision) {}

  // Does not copy the bytes: they must live until the file is written. The name must be new. The
  // type is F32, I8, I16, I32, F16 or BF16.
  void add(std::string name, StoredType type, std::vector<int64_t> shape,
           std::span<const std::byte> bytes);
  // A scalar, for example an option such as "encoder/num_heads". Types: float, int8, int16, int32.
  void add_scalar(std::string name, float value);
  void add_scalar(std::string name, int8_t value);
  void add_scalar(std::string name, int16_t value);
  void add_scalar(std::string name, int32_t value);
  // Gives a second name to the variable `name`, which can be added later.
  void add_alias(std::string alias, std::string name);

  void write(const std::string& path) const;
  std::string to_string() const;  // the same bytes in memory

 private:
  struct Variable {
    StoredType type;
    std::vector<int64_t> shape;
    std::span<const std::byte> bytes;
    std::string scalar;  // the bytes, if there are no others
  };
  template <class T>
  void add_value(std::string name, StoredType type, T value);
  void check_new(const std::string& name) const;
  template <class Sink>
  void put(Sink sink) const;

  std::string spec_;
  uint32_t revision_;
  std::map<std::string, Variable> variables_;
  std::map<std::string, std::string> aliases_;
};

}  // namespace fovea

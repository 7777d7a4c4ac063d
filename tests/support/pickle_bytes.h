#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/damaged_files.h"

// The bytes of Python's pickles, protocol 2, as PyTorch writes them.
namespace fovea::testing::pickle {

inline std::string whole(const std::string& value) { return "\x80\2" + value + "."; }
inline std::string text(const std::string& s) {
  return "X" + le(static_cast<uint32_t>(s.size())) + s;
}
inline std::string number(int64_t n) {
  if (n >= INT32_MIN && n <= INT32_MAX) return "J" + le(static_cast<int32_t>(n));
  return "\x8a\x8" + le(n);
}
inline std::string real(double x) {  // big-endian
  std::string bytes = le(x);
  std::ranges::reverse(bytes);
  return "G" + bytes;
}
inline std::string joined(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += part;
  return out;
}
inline std::string tuple(const std::vector<std::string>& parts) {
  return "(" + joined(parts) + "t";
}
inline std::string list(const std::vector<std::string>& parts) {
  return "](" + joined(parts) + "e";
}
inline std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}

using Entries = std::vector<std::pair<std::string, std::string>>;

inline std::string items(const Entries& entries) {
  std::string out = "(";
  for (const auto& [key, value] : entries) out += text(key) + value;
  return out + "u";
}
inline std::string dict(const Entries& entries) { return "}" + items(entries); }
inline std::string ordered(const Entries& entries) {
  return global("collections", "OrderedDict") + ")R" + items(entries);
}

inline std::string storage(const std::string& module = "torch",
                           const std::string& type = "FloatStorage", const std::string& key = "0",
                           int64_t elements = 6) {
  return tuple({text("storage"), global(module, type), text(key), text("cpu"), number(elements)}) +
         "Q";
}
inline std::string rebuild(const std::vector<std::string>& arguments) {
  return global("torch._utils", "_rebuild_tensor_v2") + tuple(arguments) + "R";
}
inline std::string tensor(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                          int64_t offset = 0, const std::string& from = storage()) {
  std::vector<std::string> sizes, steps;
  for (const int64_t n : shape) sizes.push_back(number(n));
  for (const int64_t n : strides) steps.push_back(number(n));
  const std::string hooks = global("collections", "OrderedDict") + ")R";
  return rebuild({from, number(offset), tuple(sizes), tuple(steps), "\x89", hooks});
}
inline std::string parameter(const std::string& value) {
  const std::string hooks = global("collections", "OrderedDict") + ")R";
  return global("torch._utils", "_rebuild_parameter") + tuple({value, "\x88", hooks}) + "R";
}
// An array of NumPy, which the reader ignores.
inline std::string numpy_array() {
  return global("numpy.core.multiarray", "_reconstruct") +
         tuple({global("numpy", "ndarray"), tuple({number(0)}), text("b")}) + "R" +
         tuple({number(1), tuple({}), text("x")}) + "b";
}

}  // namespace fovea::testing::pickle

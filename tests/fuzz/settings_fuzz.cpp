#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/settings.h"

using namespace fovea;

namespace {

struct Options {
  int64_t layers = 6;
  double dropout = 0.1;
  bool tied = true;
  std::string norm = "post", title = "x";
  std::vector<std::string> files;
  void describe(Settings& s) {
    s.field("layers", layers, "layers").between(1, 100);
    s.field("dropout", dropout, "dropout").between(0, 1);
    s.field("tied", tied, "tied");
    s.choice("norm", norm, {"post", "pre"}, "norm");
    s.field("title", title, "title");
    s.field("files", files, "files");
  }
};

struct AllSettings {
  Options model;
  Settings settings;
  AllSettings() { settings.group("model", model, "model"); }
};

}  // namespace

// Settings are refused with the expected code, or their dump reads back to the same values. The
// first byte selects a file or --set.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool file = data[0] % 2 == 0;
  AllSettings a, b;
  try {
    if (file)
      a.settings.read_text(text, "fuzz.yml", ExitCode::model);
    else
      a.settings.set(text);
  } catch (const Error& error) {
    if (error.code() != (file ? ExitCode::model : ExitCode::usage)) std::abort();
    return 0;
  }
  b.settings.read_text(a.settings.dump(), "dump");
  if (a.settings.values() != b.settings.values()) std::abort();
  return 0;
}

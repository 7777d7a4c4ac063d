// Runs every golden case of a folder, in double on the CPU and in float on a device:
//   test_goldens [--device NAME] [DIR]
// A file without an implemented case is a failure, so that new files are not overlooked.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "goldens/case.h"

namespace fovea::goldens {
namespace {

// Returns 0 if the case passes, otherwise 1.
int run_case(const std::string& path, Run run, Device device) {
  int failed = 0;
  for (const ElementType type : {ElementType::f64, ElementType::f32}) {
    Case c(path, type, type == ElementType::f64 ? Device(Cpu{}) : device);
    const char* in = type == ElementType::f64 ? "double" : "float";
    try {
      run(c);
    } catch (const std::exception& e) {
      std::printf("FAILED  %-28s %-6s %s\n", c.name().c_str(), in, e.what());
      failed = 1;
      continue;
    }
    const auto unread = c.unread();
    if (c.failures().empty() && unread.empty() && c.compared() > 0) {
      std::printf("ok      %-28s %-6s %6ld numbers, worst %.1e\n", c.name().c_str(), in,
                  static_cast<long>(c.compared()), c.worst());
      continue;
    }
    failed = 1;
    for (const std::string& f : c.failures())
      std::printf("FAILED  %-28s %-6s %s\n", c.name().c_str(), in, f.c_str());
    for (const std::string& key : unread)
      std::printf("FAILED  %-28s %-6s the case does not read %s\n", c.name().c_str(), in,
                  key.c_str());
    if (c.compared() == 0) std::printf("FAILED  %-28s compared nothing\n", c.name().c_str());
  }
  return failed;
}

int run_folder(const std::string& folder, Device device) {
  const auto cases = built_cases();
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::ranges::sort(files);
  int failed = 0, passed = 0;
  for (const std::string& file : files) {
    const std::string name = std::filesystem::path(file).stem();
    if (const auto found = cases.find(name); found != cases.end()) {
      const int bad = run_case(file, found->second, device);
      failed += bad;
      passed += !bad;
    } else {
      std::printf("FAILED  %s: unknown case; implement it in tests/goldens\n", name.c_str());
      ++failed;
    }
  }
  std::printf("%d cases hold, %d fail\n", passed, failed);
  return failed || files.empty() ? 1 : 0;
}

}  // namespace
}  // namespace fovea::goldens

int main(int argc, char** argv) {
  std::string folder = FOVEA_SOURCE "/tests/golden/mechanisms", device = "cpu";
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--device" && i + 1 < argc)
      device = argv[++i];
    else
      folder = argv[i];
  }
  try {
    return fovea::goldens::run_folder(folder, fovea::device_named(device));
  } catch (const fovea::Error& e) {
    std::printf("%s\n", e.what());
    return static_cast<int>(e.code());
  }
}

#include "view/raster.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "temporary.h"

namespace fovea {
namespace {

std::string square(int side) {
  const std::string length = std::to_string(side);
  return R"(<svg xmlns="http://www.w3.org/2000/svg" width=")" + length + R"(" height=")" + length +
         R"("><rect width="9" height="9" fill="red"/></svg>)";
}

// A scope that limits the address space to its current size plus 512 MiB.
class AddressSpaceLimit {
 public:
  AddressSpaceLimit() {
    size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before_);
    rlimit small = before_;
    small.rlim_cur = pages * static_cast<size_t>(getpagesize()) + (size_t{512} << 20);
    setrlimit(RLIMIT_AS, &small);
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

// 32,000 × 32,000 pixels take 4 GB.
TEST(Raster, ReportsAShortageOfMemory) {
  if (dlsym(RTLD_DEFAULT, "__asan_init")) GTEST_SKIP() << "the sanitizer ends the program instead";
  EXPECT_TRUE(png_of(square(10)).starts_with("\x89PNG")) << "and librsvg is loaded";
  const AddressSpaceLimit limit;
  const std::string said = message_of(ExitCode::memory, [] { png_of(square(16'000)); });
  EXPECT_NE(said.find("32000 × 32000 pixels (3907 MiB)"), std::string::npos) << said;
  EXPECT_NE(said.find("`svg`"), std::string::npos) << said;
  EXPECT_TRUE(png_of(square(10)).starts_with("\x89PNG"));
}

}  // namespace
}  // namespace fovea

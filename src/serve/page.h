#pragma once

#include <string_view>
#include <vector>

namespace fovea {

// A file of web/, compiled into the program.
struct PageFile {
  std::string_view name, type, etag, bytes;
};

const std::vector<PageFile>& page_files();  // made by cmake/page.cmake

}  // namespace fovea

#pragma once

#include <string_view>
#include <vector>

namespace fovea {

// A file that is compiled into the program. cmake/embed.cmake generates the functions below.
struct EmbeddedFile {
  std::string_view name, type, etag, bytes;
};

const std::vector<EmbeddedFile>& page_files();     // the web page
const std::vector<EmbeddedFile>& openapi_files();  // the descriptions of the endpoints, as JSON

}  // namespace fovea

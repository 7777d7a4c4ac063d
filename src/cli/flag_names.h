#pragma once

#include <string>
#include <string_view>

namespace fovea {

// Replaces the names of fields in a message of the library by the flags that set them:
// "lower `batch_tokens`" gives "lower --batch-tokens". Other words in backquotes do not change.
std::string with_flags(std::string_view message);

}  // namespace fovea

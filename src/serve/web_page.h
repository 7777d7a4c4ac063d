#pragma once

#include <vector>

#include "serve/router.h"

namespace fovea {

// The web page, and the list of models among which it can choose.
std::vector<Route> page_routes();

}  // namespace fovea

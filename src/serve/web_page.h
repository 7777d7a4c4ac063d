#pragma once

#include <vector>

#include "serve/router.h"

namespace fovea {

// Returns the routes of the web page, and of the list of models among which it can choose.
std::vector<Route> page_routes();

}  // namespace fovea

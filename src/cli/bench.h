#pragma once

#include <CLI/CLI.hpp>

namespace fovea {

void add_bench(CLI::App& app);  // fovea bench train|decode

}  // namespace fovea

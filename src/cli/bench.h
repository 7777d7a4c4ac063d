#pragma once

namespace fovea {

void add_bench(Command& program);  // fovea bench train|decode

}  // namespace fovea

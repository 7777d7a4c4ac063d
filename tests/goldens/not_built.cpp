#include "goldens/case.h"

namespace fovea::goldens {
namespace {

const std::vector<std::string> kNotBuilt = {};

}  // namespace

const std::vector<std::string>& cases_not_built() { return kNotBuilt; }

}  // namespace fovea::goldens

#include "decode/model_capabilities.h"

#include "base/check.h"

namespace fovea {
namespace {

template <class Capability>
const Capability& required(const Model& model, const char* missing) {
  const auto* const capability = model.as<Capability>();
  check(capability != nullptr, ExitCode::usage, "this type of model ", missing,
        "; choose another model");
  return *capability;
}

}  // namespace

const Decodable& decodable(const Model& model) {
  return required<Decodable>(model, "cannot translate");
}

const Attentive& attentive(const Model& model) {
  return required<Attentive>(model, "has no attention from target to source");
}

const Explainable& explainable(const Model& model) {
  return required<Explainable>(model, "has no attention that can be explained or changed");
}

}  // namespace fovea

#include "importer/position_tables.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "nn/positions.h"

namespace fovea {
namespace {

constexpr double kTolerance = 2e-3;  // of a table in half precision, with large angles

bool agrees(const std::vector<float>& table, int64_t size, SinusoidLayout layout, int64_t first) {
  const int64_t rows = std::ssize(table) / size;
  const std::vector<double> exact =
      sinusoids(layout, rows + first, size, ElementType::f64).values();
  for (int64_t i = size; i < std::ssize(table); ++i)  // programs set the row of padding to zero
    if (std::abs(exact[static_cast<size_t>(i + first * size)] - table[static_cast<size_t>(i)]) >
        kTolerance)
      return false;
  return true;
}

}  // namespace

std::optional<SinusoidTableKind> recognise_sinusoids(const std::vector<float>& table,
                                                     int64_t size) {
  if (size % 2 != 0) return std::nullopt;
  for (const auto& [positions, layout] : {std::pair(Positions::half, SinusoidLayout::half),
                                          {Positions::half_m1, SinusoidLayout::half_m1},
                                          {Positions::interleaved, SinusoidLayout::interleaved}})
    for (const int64_t first : {0, 1, 2})
      if (agrees(table, size, layout, first)) return SinusoidTableKind{positions, first};
  return std::nullopt;
}

void check_position_table(WeightMapping& weights, const std::string& tensor,
                          const ModelConfig& model) {
  if (!weights.has(tensor)) return;
  const auto* const own = model.as<TransformerConfig>();
  const std::vector<int64_t>& shape = weights.shape(tensor);
  const auto found =
      recognise_sinusoids(weights.read(tensor, {shape.at(0), model.size}), model.size);
  check(found && found->positions == own->positions, ExitCode::model, weights.path(), ": tensor '",
        tensor, "': found positions that are not the sinusoids of this architecture; this variant ",
        "of the model is not supported");
}

std::optional<Function> activation_named(const std::string& name) {
  if (name == "relu") return Function::relu;
  if (name == "gelu") return Function::gelu;
  if (name == "swish" || name == "silu") return Function::silu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast")
    return Function::gelu_tanh;
  return std::nullopt;
}

Function foreign_activation(const ForeignSettings& settings, const char* key,
                            const std::string& otherwise) {
  if (const auto function = activation_named(settings.text(key, otherwise))) return *function;
  settings.reject(key,
                  "expected relu, gelu, gelu_new, swish or silu; other functions are not "
                  "supported");
}

}  // namespace fovea

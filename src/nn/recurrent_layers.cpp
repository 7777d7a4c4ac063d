#include "nn/recurrent_layers.h"

#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/shape.h"

namespace fovea {
namespace {

Tensor biases(ParameterScope scope, const RecurrentCell::Sizes& n) {
  if (n.kind != Cell::lstm)
    return scope.declare("b", {gates(n.kind) * n.H}, ParameterInit::constant(0));
  std::vector<Tensor> parts;
  for (const char* name : {"b_i", "b_f", "b_g", "b_o"})
    parts.push_back(scope.declare(name, {n.H}, ParameterInit::constant(name[2] == 'f' ? 1 : 0)));
  return scope.store.stack(parts);
}

}  // namespace

// The members are declared in the order in which the store keeps the parameters.
// ParameterInit::glorot gets the sizes of one gate, so that each gate is initialised like a layer
// of its own.
RecurrentCell::RecurrentCell(ParameterScope scope, const Sizes& n)
    : kind(n.kind),
      W(scope.declare("W", {gates(kind) * n.H, n.in}, ParameterInit::glorot(n.in, n.H))),
      U(scope.declare("U", {gates(kind) * n.H, n.H}, ParameterInit::glorot(n.H, n.H))),
      b(biases(scope, n)) {
  if (kind == Cell::gru_after) b_n = scope.declare("b_n", {n.H}, ParameterInit::constant(0));
}

Tensor RecurrentCell::operator()(const Tensor& x, const Tensor& previous) const {
  return recurrent_step(recurrent(), linear(x, W, b), previous);
}

Tensor RecurrentCell::h(const Tensor& states) const {
  return kind == Cell::lstm ? columns(states, 0, H()) : states;
}

Tensor RecurrentLayer::operator()(const Tensor& x, const Tensor& start,
                                  const TimeMajor& words) const {
  // If there is padding, a backward layer reverses the words of each sentence and runs forward, so
  // that the padding stays after the words.
  const bool reverse = direction == Direction::backward && words.turned;
  const Tensor inputs = linear(reverse ? permuted_rows(x, words.turned) : x, cell.W, cell.b);
  const Direction scan = reverse ? Direction::forward : direction;
  const Tensor states = recurrent(cell.recurrent(), inputs, start, words, scan);
  return reverse ? permuted_rows(states, words.turned) : states;
}

Tensor RecurrentLayer::last(const Tensor& states, const TimeMajor& words) const {
  if (direction == Direction::forward) return rows_at(states, words.ends);
  return rows(states, 0, words.sentences());
}

RecurrentStack::RecurrentStack(ParameterScope scope, const Sizes& n)
    : directions(n.reading == EncoderDirections::forward ? 1 : 2), dropout(n.dropout) {
  for (int64_t l = 0; l < n.layers; ++l)
    for (const Direction d : {Direction::forward, Direction::backward}) {
      if (d == Direction::backward && directions == 1) continue;
      const ParameterScope at = scope / l / (d == Direction::forward ? "forward" : "backward");
      const int64_t in = l == 0 ? n.in : directions * n.H;
      layers.push_back({RecurrentCell(at, {n.kind, in, n.H}), d});
    }
}

RecurrentStack::Read RecurrentStack::operator()(const Tensor& x, const TimeMajor& words,
                                                const std::vector<Tensor>& start) const {
  assert(start.empty() || start.size() == layers.size());
  Read read{x, {}};
  std::vector<Tensor> outputs;  // →h and ←h of one layer
  for (size_t i = 0; i < layers.size(); ++i) {
    const RecurrentLayer& layer = layers[i];
    const Tensor states = layer(read.h, start.empty() ? Tensor() : start[i], words);
    read.last.push_back(layer.last(states, words));
    outputs.push_back(layer.cell.h(states));
    if (static_cast<int64_t>(outputs.size()) < directions) continue;
    read.h = directions == 1 ? outputs[0] : concat_columns(outputs);  // h_j = [→h_j ; ←h_j]
    if (i + 1 < layers.size()) read.h = dropped(read.h, dropout_key(dropout));
    outputs.clear();
  }
  return read;
}

}  // namespace fovea

#pragma once

#include "nn/params.h"
#include "ops/recurrent.h"

namespace fovea {

// A recurrent cell with a state h of size H, and its parameters. Elman 1990 (rnn), Hochreiter and
// Schmidhuber 1997 (lstm), Cho et al. 2014 (gru). gru_after is a GRU that applies the reset gate
// after the product with U; it also has the bias b_n. An LSTM has the parameters b_i, b_f, b_g and
// b_o instead of one b. So the biases of its forget gates, b_f, can start at 1 (Jozefowicz et al.
// 2015).
struct RecurrentCell {
  Cell kind;
  Tensor W;    // [gates · H, in]
  Tensor U;    // [gates · H, H]
  Tensor b;    // [gates · H]
  Tensor b_n;  // [H], gru_after only

  struct Sizes {
    Cell kind;
    int64_t in, H;
  };
  RecurrentCell(ParameterScope scope, const Sizes& sizes);

  int64_t H() const { return U.size(1); }
  int64_t width() const { return state_width(kind, H()); }
  RecurrentWeights recurrent() const { return {kind, U, b_n}; }

  // One step from the inputs x [R, in] to the new states [R, width]. `previous` has R or more rows
  // of width(); the step reads the first R rows.
  Tensor operator()(const Tensor& x, const Tensor& previous) const;
  // The columns h of the states. For an LSTM, this omits c.
  Tensor h(const Tensor& states) const;
};

// A layer that runs a cell over sentences in one direction.
struct RecurrentLayer {
  RecurrentCell cell;
  Direction direction;

  // The states [tokens, width] of all words. x [tokens, in] is in the order of `words`. `start`
  // holds the initial states [sentences, width]; if it is absent, they are 0.
  Tensor operator()(const Tensor& x, const Tensor& start, const TimeMajor& words) const;
  // For each sentence, the state after the word that the layer reads last: [sentences, width].
  Tensor last(const Tensor& states, const TimeMajor& words) const;
};

enum class EncoderDirections { forward, both_ways };

// A stack of recurrent layers, each of which reads the output of the layer below. A bidirectional
// layer computes h_j = [→h_j ; ←h_j]. The parameters are `0/forward/W`, `0/backward/W`,
// `1/forward/W`, …
struct RecurrentStack {
  struct Sizes {
    Cell kind;
    int64_t in, H;  // H: the size of h in each direction
    int64_t layers = 1;
    EncoderDirections reading = EncoderDirections::both_ways;
    double dropout = 0;  // rate for the output of each layer except the last
  };
  std::vector<RecurrentLayer> layers;  // layer l in direction d has the index l · directions + d
  int64_t directions;
  double dropout;

  RecurrentStack(ParameterScope scope, const Sizes& sizes);
  int64_t out() const { return directions * layers.front().cell.H(); }

  struct Read {
    Tensor h;                  // [tokens, out]: outputs of the top layer, in the order of `words`
    std::vector<Tensor> last;  // [sentences, width]: last states, per layer and direction
  };
  // `start` holds an initial state for each layer and direction. If it is empty, all initial states
  // are 0.
  Read operator()(const Tensor& x, const TimeMajor& words,
                  const std::vector<Tensor>& start = {}) const;
};

}  // namespace fovea

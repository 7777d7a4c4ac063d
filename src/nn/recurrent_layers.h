#pragma once

#include "nn/params.h"
#include "ops/recurrent.h"

namespace fovea {

// A recurrent cell of H units with its parameters. Elman 1990 (rnn), Hochreiter and Schmidhuber
// 1997 (lstm), Cho et al. 2014 (gru). The biases of an LSTM are the parameters b_i, b_f, b_g and
// b_o, so that the biases of its forget gates can start at 1 (Jozefowicz et al. 2015). The other
// cells have one parameter b. gru_after, the GRU that applies the reset gate after the product with
// U, also has b_n.
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

  // One step from x [R, in] to states [R, width]. `previous` has R or more rows of width(); the
  // step uses the first R.
  Tensor operator()(const Tensor& x, const Tensor& previous) const;
  // The part h of the states, without the c of an LSTM.
  Tensor h(const Tensor& states) const;
};

// A layer that runs a cell over sentences in one direction.
struct RecurrentLayer {
  RecurrentCell cell;
  Direction direction;

  // The states of all words, [tokens, width], from x [tokens, in] in the order of `words`. `start`
  // holds the initial states [sentences, width] and may be absent.
  Tensor operator()(const Tensor& x, const Tensor& start, const TimeMajor& words) const;
  // The state of each sentence after the last word in reading direction, [sentences, width].
  Tensor last(const Tensor& states, const TimeMajor& words) const;
};

enum class EncoderDirections { forward, both_ways };

// A stack of recurrent layers, each of which reads the output of the layer below. A bidirectional
// layer computes h_j = [→h_j ; ←h_j]. Parameters: `0/forward/W`, `0/backward/W`, `1/forward/W`, …
struct RecurrentStack {
  struct Sizes {
    Cell kind;
    int64_t in, H;  // H units in each direction
    int64_t layers = 1;
    EncoderDirections reading = EncoderDirections::both_ways;
    double dropout = 0;  // for the output of each layer except the last
  };
  std::vector<RecurrentLayer> layers;  // layer l, direction d: index l · directions + d
  int64_t directions;
  double dropout;

  RecurrentStack(ParameterScope scope, const Sizes& sizes);
  int64_t out() const { return directions * layers.front().cell.H(); }

  struct Read {
    Tensor h;                  // [tokens, out]: outputs of the top layer, in the order of `words`
    std::vector<Tensor> last;  // [sentences, width]: last states of each layer and direction
  };
  // `start` holds an initial state for each layer and direction, or is empty.
  Read operator()(const Tensor& x, const TimeMajor& words,
                  const std::vector<Tensor>& start = {}) const;
};

}  // namespace fovea

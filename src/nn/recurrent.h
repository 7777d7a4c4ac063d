#pragma once

#include "nn/params.h"
#include "ops/recurrent.h"

namespace fovea {

// A recurrent cell of H units with its parameters. Elman 1990 (rnn), Hochreiter and Schmidhuber
// 1997 (lstm), Cho et al. 2014 (gru). The biases of an LSTM are the parameters b_i, b_f, b_g and
// b_o, so that its forget gates can start at 1 (Jozefowicz et al. 2015); those of the other cells
// are one parameter b, and of gru_after b_n besides.
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
  RecurrentCell(Scope scope, const Sizes& sizes);

  int64_t H() const { return U.size(1); }
  int64_t width() const { return state_width(kind, H()); }
  Recurrent recurrent() const { return {kind, U, b_n}; }

  // One step, [x.rows(), width]: x [R, in], before [R or more, width], of which the first R go on.
  Tensor operator()(const Tensor& x, const Tensor& before) const;
  // h of states: all but c.
  Tensor h(const Tensor& states) const;
};

// A cell that goes through sentences in one direction.
struct RecurrentLayer {
  RecurrentCell cell;
  Direction direction;

  // The states of all words, [tokens, width]: x [tokens, in] in the order of `words`; `start`
  // [sentences, width] may be absent.
  Tensor operator()(const Tensor& x, const Tensor& start, const TimeMajor& words) const;
  // The state after the word that the direction reads last, [sentences, width].
  Tensor last(const Tensor& states, const TimeMajor& words) const;
};

enum class Reading { forward, both_ways };

// Layers on top of each other. Where they read both ways, h_j = [→h_j ; ←h_j], and the next layer
// reads both. Parameters: `0/forward/W`, `0/backward/W`, `1/forward/W`, …
struct RecurrentStack {
  struct Sizes {
    Cell kind;
    int64_t in, H;  // H units in each direction
    int64_t layers = 1;
    Reading reading = Reading::both_ways;
    double dropout = 0;  // of what a layer gives to the next
  };
  std::vector<RecurrentLayer> layers;  // at l · directions + d
  int64_t directions;
  double dropout;

  RecurrentStack(Scope scope, const Sizes& sizes);
  int64_t out() const { return directions * layers.front().cell.H(); }

  struct Read {
    Tensor h;                  // [tokens, out]: of the last layer, in the order of the words
    std::vector<Tensor> last;  // [sentences, width]: of each layer and direction
  };
  // `start`: a state for each layer and direction, or nothing.
  Read operator()(const Tensor& x, const TimeMajor& words,
                  const std::vector<Tensor>& start = {}) const;
};

}  // namespace fovea

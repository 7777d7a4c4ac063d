#pragma once

#include "ops/dropout.h"
#include "tensor/tensor.h"

namespace fovea {

// An embedding lookup. Row i of the result is dropout(scale · E[ids[i]] + P[places[i]]), where P
// holds position embeddings. E [V, D]; P [L, D] may be absent. ids and places are i32 [N]; their
// entries are valid rows of E and P.
struct Embedding {
  Tensor ids, places;
  double scale = 1;
  Dropout dropout;
};
Tensor embed(const Tensor& E, const Tensor& P, const Embedding& what);

// Row i of `to` becomes row index[i] of `from`, without a gradient.
void copy_rows(const Tensor& from, const Tensor& index, const Tensor& to);

}  // namespace fovea

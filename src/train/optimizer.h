#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/settings.h"
#include "nn/params.h"

namespace fovea {

struct OptimizerOptions {
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;
  double weight_decay = 0;  // of matrices; not 0: AdamW
  double clip = 0;          // largest norm of the gradient; 0: any
  double ema = 0;           // decay of a moving average of the parameters; 0: none

  void describe(Settings& s);
};

// Neighbouring numbers of a store: `size` of them from `begin` on.
struct StoreRange {
  int64_t begin = 0, size = 0;
};

// What differs from one update to the next.
struct Update {
  int64_t step = 1;  // from 1
  double lr = 0;
  double scale = 1;  // what the gradient is multiplied by, before it is clipped: 1 / words
};

// Adam over all parameters of a store at once. The moments, and the moving average if there is
// one, have the layout of the store's values.
//
// Weight decay applies to matrices, embeddings included, and not to vectors: biases, the gains of
// norms, the v of additive attention. The decay of the moving average after update t is
// min(ema, (1 + t) / (10 + t)), so that the random first weights are forgotten early.
//
// REQUIRES: the store outlives the optimiser and has gradients.
class Optimizer {
 public:
  Optimizer(ParameterStore& store, const OptimizerOptions& options);

  // From now on these numbers stay what they are, bit for bit: they have no gradient, updates leave
  // them alone, whatever the weight decay, and their moving average is what they are.
  void freeze(std::vector<StoreRange> ranges);

  // Makes an update with scale · gradient, clipped by its norm, and returns ‖gradient‖ of the whole
  // store. Where that is not finite, as exactly where some gradient is not, nothing changes.
  double update(const Update& u);

  // The same as work of a graph, which reads the update from memory and leaves the norm there:
  // `noted` is what note() gave, and where the loss is not finite nothing changes either.
  void update(const Tensor& noted, const Tensor& loss, const Tensor& norm);
  Tensor note(const Update& u) const;

  const Tensor& m() const { return m_; }
  const Tensor& v() const { return v_; }
  const Tensor& ema() const { return ema_; }  // absent where options.ema is 0

 private:
  void mark_decayed();
  void clear_frozen_gradients() const;
  void put_back_frozen(const Tensor& flat) const;
  void for_each_frozen(const std::function<void(const StoreRange& range, int64_t at)>& each) const;

  ParameterStore& store_;
  OptimizerOptions options_;
  Tensor m_, v_, ema_;
  Tensor decayed_;  // a byte per number of the store, as kernel::AdamBuffers has it
  std::vector<StoreRange> frozen_;
  Tensor kept_;  // the numbers of all frozen ranges, one after another
};

// While one lives, the store's values are those of `other`, such as a moving average; an absent
// tensor changes nothing.
class BorrowedValues {
 public:
  BorrowedValues(const ParameterStore& store, const Tensor& other);
  ~BorrowedValues();
  BorrowedValues(const BorrowedValues&) = delete;
  BorrowedValues& operator=(const BorrowedValues&) = delete;

 private:
  Tensor values_, own_;
};

// The parameter that holds the first value of `flat` (laid out as the store) that is infinite or
// no number; nullptr if all are finite.
const ParameterStore::Parameter* first_not_finite(const ParameterStore& store, const Tensor& flat);

}  // namespace fovea

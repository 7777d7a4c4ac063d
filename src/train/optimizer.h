#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/settings.h"
#include "nn/params.h"
#include "ops/matmul.h"

namespace fovea {

struct OptimizerOptions {
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;
  double weight_decay = 0;  // of matrices; Adam becomes AdamW if it is not 0
  double clip = 0;          // largest norm of the gradient; 0: no limit
  double ema = 0;           // decay of a moving average of the parameters; 0: none

  void describe(Settings& s);
};

// A contiguous range of the values of a store.
struct StoreRange {
  int64_t begin = 0, size = 0;
};

// The parameters of one update.
struct UpdateScale {
  int64_t step = 1;  // from 1
  double lr = 0;
  double scale = 1;  // factor of the gradient before clipping: 1 / target words
};

// Adam over all parameters of a store at once. The moments, and the moving average if there is
// one, have the layout of the store's values.
//
// Weight decay applies to matrices, embeddings included, and not to vectors: biases, the gains of
// norms, the v of additive attention. The decay of the moving average after update t is
// min(ema, (1 + t) / (10 + t)), so that the random initial weights are forgotten early.
//
// REQUIRES: the store outlives the optimiser and has gradients.
class Optimizer {
 public:
  Optimizer(ParameterStore& store, const OptimizerOptions& options);

  // Keeps the values in these ranges unchanged from now on, bit for bit. They get no gradient, no
  // update and no weight decay, and their moving average equals them.
  void freeze(std::vector<StoreRange> ranges);

  // Makes an update with u.scale · gradient, clipped by its norm. Returns the norm of the gradient
  // of the whole store, which is finite if and only if all gradients are finite. If it is not
  // finite, the update changes nothing.
  double update(const UpdateScale& u);

  // Makes an update like the function above, but in a form that a graph can replay. Reads the
  // parameters of the update from `noted`, a result of note(), and writes the norm to `norm`. If
  // `loss` is given and not finite, the update changes nothing either.
  void update(const Tensor& noted, const Tensor& loss, const Tensor& norm);
  Tensor note(const UpdateScale& u) const;

  const Tensor& m() const { return m_; }
  const Tensor& v() const { return v_; }
  const Tensor& ema() const { return ema_; }  // absent if options.ema is 0

 private:
  void mark_decayed();
  void clear_frozen_gradients() const;
  void put_back_frozen(const Tensor& flat) const;
  void for_each_frozen(const std::function<void(const StoreRange& range, int64_t at)>& each) const;

  ParameterStore& store_;
  OptimizerOptions options_;
  Tensor m_, v_, ema_;
  Tensor decayed_;  // a byte per value: whether it decays, see kernel::AdamBuffers
  std::vector<StoreRange> frozen_;
  Tensor kept_;  // the values of all frozen ranges, concatenated
};

// A scope in which the values of the store are replaced by those of `other`, for example a moving
// average. The destructor restores them. Both call `changed` afterwards. If `other` is absent,
// nothing changes.
class BorrowedValues {
 public:
  BorrowedValues(const ParameterStore& store, const Tensor& other,
                 std::function<void()> changed = parameters_changed);
  ~BorrowedValues();
  BorrowedValues(const BorrowedValues&) = delete;
  BorrowedValues& operator=(const BorrowedValues&) = delete;

 private:
  Tensor values_, own_;
  std::function<void()> changed_;
};

// Returns the parameter of the first value in `flat` (with the layout of the store) that is
// infinite or NaN; nullptr if all values are finite.
const ParameterStore::Parameter* first_not_finite(const ParameterStore& store, const Tensor& flat);

}  // namespace fovea

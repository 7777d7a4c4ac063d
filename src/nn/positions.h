#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "nn/params.h"
#include "tensor/tensor.h"

namespace fovea {

// The order of sines and cosines in a row of D entries, i = 0 … D/2 − 1:
//   interleaved  PE[pos, 2i] = sin(pos / 10000^(2i/D)), PE[pos, 2i+1] = cos(same)  (Vaswani 2017)
//   half         all sines, then all cosines
//   half_m1      like half, with frequencies 10000^(−i / (D/2 − 1))  (tensor2tensor, Marian)
enum class SinusoidLayout { interleaved, half, half_m1 };

// The rows of the positions 0 … count − 1: [count, D]. REQUIRES: D is even.
Tensor sinusoids(SinusoidLayout layout, int64_t count, int64_t D, ElementType type,
                 Device device = Cpu{});

// A constant tensor for sentences up to a length. It grows with the longest sentence so far. So a
// model with a large maximum length needs little memory until a long sentence arrives. Copies share
// the tensor. Thread-safe.
class GrowingTable {
 public:
  using Make = std::function<Tensor(int64_t length)>;
  explicit GrowingTable(Make make);
  // The result of make() for this length or a greater one.
  Tensor covering(int64_t length) const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

// A table of sinusoids: the rows of the positions below its length.
GrowingTable sinusoid_table(SinusoidLayout layout, int64_t D, ElementType type, Device device);

// Buckets of the distance d = key − query of two words. Of the buckets of one direction, the first
// half has one distance each, and the others share the distances up to `longest` logarithmically.
// Raffel et al.: Exploring the Limits of Transfer Learning (T5), JMLR 2020, section 2.1.
struct DistanceBuckets {
  enum class Directions { both, backward };  // backward: d > 0 counts as 0
  int64_t buckets = 32, longest = 128;
  Directions directions = Directions::both;

  int64_t bucket(int64_t distance) const;
};

// Relative positions: a learned score for each bucket and head, which is added to the scores of
// self-attention.
struct RelativePositions {
  Tensor scores;         // parameter [buckets, heads]
  GrowingTable buckets;  // i32 [2 length − 1]: entry length − 1 + d is the bucket of distance d

  RelativePositions(ParameterScope scope, const DistanceBuckets& rules, int64_t heads,
                    double deviation);
  // HeadsOptions::distance_scores for sentences of at most `longest` words: [2 longest − 1, heads].
  Tensor for_length(int64_t longest) const;
  // The same for the distances of `of_buckets`, an entry of `buckets`.
  Tensor scores_of(const Tensor& of_buckets) const;
};
// for_length(), or an absent tensor if there are no relative positions.
Tensor distance_scores(const std::optional<RelativePositions>& positions, int64_t longest);

}  // namespace fovea

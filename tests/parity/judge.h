#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ops/matmul.h"
#include "support/parity.h"

namespace fovea::parity {

using Results = std::vector<Trial::Result>;

// The tolerances of a result, as shares of the size of the reference.
struct Limit {
  Precision precision;
  double bar;   // of the whole: ‖out − ref‖ / ‖ref‖
  double unit;  // the unit of the roundings of the reference
  double most;  // the largest error that roundings can excuse (Note [Judgement])
  bool jumps;   // whether a few roundings may have a large effect
};
Limit limit_of(Bar bar, Precision precision);

// The reference of one shape, and the effect of rounding on it. The rounded runs are computed when
// they are first needed. `results` must outlive the object.
class Reference {
 public:
  using RoundedRun =
      std::function<Results(uint64_t number)>;  // a run with a RoundingNoise of this number
  Reference(const Results& results, RoundedRun run);

  const Results& results() const { return results_; }
  // The effect of at least this many roundings on a result: root mean squares, and the largest
  // effects.
  struct RoundingEffect {
    double all = 0, along = 0, most = 0, most_along = 0;
    std::vector<double> each, most_of_each;
  };
  RoundingEffect rounding_effect(size_t i, int roundings);
  double largest(
      size_t i) const;  // of all results of this kind; 1, the size of inputs, if that is 0

 private:
  void draw_until(int roundings);

  const Results& results_;
  RoundedRun run_;
  std::map<Trial::Result::Kind, double> largest_;
  int drawn_ = 0;
  std::vector<RoundingEffect> sums_;  // of squares
};

inline constexpr double kRoundingFactor =
    3;  // the largest allowed error, as a multiple of the effect of roundings
double size_of_difference(const std::vector<double>& a, const std::vector<double>& b);

// Why a result is acceptable, from best to worst, or that it is not.
enum class Verdict { by_itself, by_rounding, by_jump, wrong };
struct Judgement {
  Verdict verdict = Verdict::by_itself;
  double error = 0;        // ‖out − ref‖ / ‖ref‖
  double of_rounding = 0;  // the error as a share of the effect of roundings, if needed
  std::string why = {};    // only if the verdict is `wrong`
};
Judgement judge(const Trial::Result& found, size_t i, Reference& reference, const Limit& limit);

}  // namespace fovea::parity

#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ops/matmul.h"
#include "support/parity.h"

namespace fovea::parity {

using Results = std::vector<Trial::Result>;

// How far a result may be off, as shares of the size of the reference.
struct Limit {
  Precision precision;
  double bar;   // all of it: ‖out − ref‖ / ‖ref‖
  double unit;  // what the reference is rounded by
  double most;  // what roundings excuse at most (Note [Judgement])
  bool jumps;   // whether few roundings may do much
};
Limit limit_of(Bar bar, Precision precision);

// The reference of one shape, and what rounding does to it: tried when it is first asked for.
class Reference {
 public:
  using Rounded = std::function<Results(uint64_t number)>;  // of a run that a Rounding changes
  Reference(const Results& results, Rounded run);

  const Results& results() const { return results_; }
  // What this many roundings, or more, did to a result: roots of means of squares, and the most.
  struct Moved {
    double all = 0, along = 0, most = 0, most_along = 0;
    std::vector<double> each, most_of_each;
  };
  Moved moved(size_t i, int roundings);
  double largest(size_t i) const;  // of all results of its kind; 1, as inputs are, if they are 0

 private:
  void draw_until(int roundings);

  const Results& results_;
  Rounded run_;
  std::map<Trial::Result::Kind, double> largest_;
  int drawn_ = 0;
  std::vector<Moved> sums_;  // of squares
};

inline constexpr double kTimes = 3;  // what a result may be off by, of what roundings move it by
double size_of_difference(const std::vector<double>& a, const std::vector<double>& b);

// Why a result may be as it is: from good to bad.
enum class Verdict { by_itself, by_rounding, by_jump, wrong };
struct Judgement {
  Verdict verdict = Verdict::by_itself;
  double error = 0;        // ‖out − ref‖ / ‖ref‖
  double of_rounding = 0;  // the largest share of what roundings do, where it needed them
  std::string why = {};    // where it is wrong
};
Judgement judge(const Trial::Result& found, size_t i, Reference& reference, const Limit& limit);

}  // namespace fovea::parity

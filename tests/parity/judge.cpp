#include "parity/judge.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace fovea::parity {
namespace {

using Kind = Trial::Result::Kind;

// Note [Judgement]
// Three things are asked of a result: how far it is off as a whole, as the root of the mean of
// squares; how much of that is along the reference, as if all numbers were too large; and how far
// each number is off. The bar is for the first. Errors of rounding have no direction, so that along
// the reference they are small: half the bar. One number may be off by eight times the bar of
// itself and of the size of the whole: of one that is altogether wrong a mean may show nothing.
//
// Where one of them is too large, it may still be what rounding does to it: as much as it does
// on average over 4 roundings, or three times that of 16; honest results need half of it.
// But the whole must not be off by more than 25 bars, which is 0.4 of itself in bf16. Where terms
// cancel, a tenth of the largest result of its kind counts as its size; and there may be no other
// value, so that values may be off by one unit of 1, which inputs are. Where a result is 0, what
// rounding does is taken to be 4/3 units of that largest, and four times as much for one number.
//
// Of a relu, few roundings take a number across its kink, and those that do change a gradient much.
// What is rough may be off by the most that one of 64 does, and by 1.5 of itself.
constexpr double kAlong = 0.5, kEach = 8, kMostBars = 25, kCancelled = 0.1, kMostIfRough = 1.5;
constexpr int kFew = 4, kMore = 16, kForJumps = 64;
constexpr double kNothing = 1e-9;  // less than this of the largest is 0, and its terms cancelled
constexpr double kOfNothing = 4 / kTimes, kOneOfNothing = 4;

double root_of_mean(double sum, size_t count) {
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(1, count)));
}

double size_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values)
    if (std::isfinite(v)) sum += v * v;
  return root_of_mean(sum, values.size());
}

// Infinite where a number is none.
struct Difference {
  double all = 0, along = 0;
  std::vector<double> each;
  size_t at = 0;  // where it is largest

  Difference(const std::vector<double>& a, const std::vector<double>& b) : each(b.size()) {
    double squares = 0, product = 0, size = 0;
    for (size_t i = 0; i < b.size(); ++i) {
      if (i < a.size() && a[i] == b[i]) continue;  // infinities among them
      const double off = i < a.size() ? std::abs(a[i] - b[i]) : HUGE_VAL;
      each[i] = std::isfinite(off) ? off : HUGE_VAL;
      squares += each[i] * each[i];
      if (each[i] > each[at]) at = i;
    }
    all = a.size() == b.size() ? root_of_mean(squares, b.size()) : HUGE_VAL;
    if (!std::isfinite(all)) return;
    for (size_t i = 0; i < b.size(); ++i) {
      if (!std::isfinite(b[i])) continue;
      product += (a[i] - b[i]) * b[i];
      size += b[i] * b[i];
    }
    if (size > 0) along = std::abs(product) / std::sqrt(size * static_cast<double>(b.size()));
  }
};

}  // namespace

double size_of_difference(const std::vector<double>& a, const std::vector<double>& b) {
  return Difference(a, b).all;
}

Limit limit_of(Bar bar, Precision precision) {
  const bool bf16 = precision == Precision::bf16;
  const double own = bf16 ? 1.6e-2 : std::sqrt(bar == Bar::elementwise ? 1e-10 : 1e-7);
  const bool jumps = bar == Bar::rough;
  return {precision, own, bf16 ? 0x1p-8 : 0x1p-22, jumps ? kMostIfRough : kMostBars * own, jumps};
}

Reference::Reference(const Results& results, Rounded run)
    : results_(results), run_(std::move(run)) {
  for (const auto& r : results_) largest_[r.kind] = std::max(largest_[r.kind], size_of(r.values));
}

double Reference::largest(size_t i) const {
  const double largest = largest_.at(results_[i].kind);
  return largest > kNothing ? largest : 1;
}

void Reference::draw_until(int roundings) {
  sums_.resize(results_.size());
  for (; drawn_ < roundings; ++drawn_) {
    const Results rounded = run_(static_cast<uint64_t>(drawn_));
    for (size_t i = 0; i < sums_.size() && i < rounded.size(); ++i) {
      const Difference off(rounded[i].values, results_[i].values);
      Moved& sum = sums_[i];
      sum.all += off.all * off.all, sum.along += off.along * off.along;
      sum.most = std::max(sum.most, off.all), sum.most_along = std::max(sum.most_along, off.along);
      sum.each.resize(off.each.size()), sum.most_of_each.resize(off.each.size());
      for (size_t j = 0; j < off.each.size(); ++j) {
        sum.each[j] += off.each[j] * off.each[j];
        sum.most_of_each[j] = std::max(sum.most_of_each[j], off.each[j]);
      }
    }
  }
}

Reference::Moved Reference::moved(size_t i, int roundings) {
  draw_until(roundings);
  Moved m = sums_[i];
  const auto root = [&](double& sum) { sum = std::sqrt(sum / drawn_); };
  root(m.all), root(m.along);
  std::ranges::for_each(m.each, root);
  return m;
}

namespace {

// One result against its reference.
class Case {
 public:
  Case(const Trial::Result& found, size_t i, Reference& reference, const Limit& limit)
      : found_(found), expected_(reference.results()[i]), i_(i), reference_(reference),
        limit_(limit), off_(found.values, expected_.values), size_(size_of(expected_.values)),
        largest_(reference.largest(i)) {}

  Judgement judge() {
    j_.error = off_.all / size_;
    if (expected_.kind == Kind::integers) return off_.all == 0 ? j_ : wrong("no integer may be");
    if (holds_by_itself()) return j_;
    if (off_.all > most_excused()) return wrong("roundings excuse less");
    j_.verdict = Verdict::by_rounding;
    for (const int roundings : {kFew, kMore}) {
      j_.of_rounding = of_roundings(reference_.moved(i_, roundings));
      if (j_.of_rounding <= (roundings == kFew ? 1 : kTimes)) return j_;
    }
    if (!limit_.jumps || !jumps_as_far(reference_.moved(i_, kForJumps)))
      return wrong("roundings do less");
    j_.verdict = Verdict::by_jump;
    return j_;
  }

 private:
  bool is_nothing() const { return size_ <= kNothing * largest_; }
  bool all_holds() const { return off_.all <= limit_.bar * size_; }
  bool along_holds() const { return is_nothing() || off_.along <= kAlong * limit_.bar * size_; }
  bool holds(size_t j) const {
    const double own = std::isfinite(expected_.values[j]) ? std::abs(expected_.values[j]) : 0;
    return off_.each[j] <= kEach * limit_.bar * (size_ + own);
  }
  bool holds_by_itself() const {
    if (!all_holds() || !along_holds()) return false;
    for (size_t j = 0; j < off_.each.size(); ++j)
      if (!holds(j)) return false;
    return true;
  }

  double most_excused() const {
    const double most = limit_.most * std::max(size_, kCancelled * largest_);
    return expected_.kind == Kind::value ? std::max(most, limit_.unit) : most;
  }
  // What does not hold by itself, as a share of what roundings do.
  double of_roundings(const Reference::Moved& m) const {
    const double all = std::max(m.all, is_nothing() ? kOfNothing * limit_.unit * largest_ : 0);
    double share = all_holds() ? 0 : off_.all / all;
    if (!along_holds()) share = std::max(share, off_.along / m.along);
    const double one = is_nothing() ? kOneOfNothing * all : all;
    for (size_t j = 0; j < off_.each.size(); ++j)
      if (!holds(j)) share = std::max(share, off_.each[j] / std::hypot(one, m.each[j]));
    return share;
  }
  bool jumps_as_far(const Reference::Moved& m) const {
    if (!all_holds() && off_.all > m.most) return false;
    if (!along_holds() && off_.along > m.most_along) return false;
    for (size_t j = 0; j < off_.each.size(); ++j)
      if (!holds(j) && off_.each[j] > m.most_of_each[j]) return false;
    return true;
  }

  Judgement wrong(const char* why) {
    char text[240];
    const double a = off_.at < found_.values.size() ? found_.values[off_.at] : NAN;
    const double b = off_.at < expected_.values.size() ? expected_.values[off_.at] : NAN;
    std::snprintf(text, sizeof(text),
                  "off by %.3g of itself, %.3g along itself, %.3g of its roundings; %.9g instead "
                  "of %.9g at %zu of %zu: %s",
                  j_.error, off_.along / size_, j_.of_rounding, a, b, off_.at,
                  expected_.values.size(), why);
    j_.verdict = Verdict::wrong;
    j_.why = text;
    return j_;
  }

  const Trial::Result &found_, &expected_;
  size_t i_;
  Reference& reference_;
  const Limit& limit_;
  Difference off_;
  double size_, largest_;
  Judgement j_;
};

}  // namespace

Judgement judge(const Trial::Result& found, size_t i, Reference& reference, const Limit& limit) {
  return Case(found, i, reference, limit).judge();
}

}  // namespace fovea::parity

#include "parity/judge.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace fovea::parity {
namespace {

using Kind = Trial::Result::Kind;

// Note [Judgement]
// Each result must pass three tests: the error of the whole, as a root mean square; the part of
// this error along the reference, as if all numbers were too large; and the error of each number.
// The bar is for the first. Errors of rounding have no direction, so their part along the reference
// is small: half the bar. A single number may be off by eight times the bar, relative to the number
// plus the size of the whole. This test finds a single wrong number, which a mean may not show.
//
// If a test fails, the error may still be the effect of rounding. It is accepted up to the mean
// effect of 4 roundings, or three times that of 16; correct results need half of that. But the
// error of the whole must not exceed 25 bars, which is 0.4 of the result's size in bf16. If terms
// cancel, a tenth of the largest result of the same kind counts as the size. There may be no other
// value, so values may be off by one unit of 1, the size of inputs. If a result is 0, the effect of
// rounding is taken to be 4/3 units of that largest result, and four times as much for one number.
//
// With relu, few roundings move a number across its kink, but those change a gradient much. A
// result with Bar::rough may be off by the largest effect of 64 roundings, and by 1.5 of its size.
constexpr double kAlong = 0.5, kEach = 8, kMostBars = 25, kCancelled = 0.1, kMostIfRough = 1.5;
constexpr int kFew = 4, kMore = 16, kForJumps = 64;
constexpr double kNothing =
    1e-9;  // a smaller share of the largest counts as 0: its terms cancelled
constexpr double kOfNothing = 4 / kRoundingFactor, kOneOfNothing = 4;

double root_of_mean(double sum, size_t count) {
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(1, count)));
}

double size_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values)
    if (std::isfinite(v)) sum += v * v;
  return root_of_mean(sum, values.size());
}

// The error of `a` against `b`: of the whole, along b, and of each number. Infinite for NaN.
struct Difference {
  double all = 0, along = 0;
  std::vector<double> each;
  size_t at = 0;  // the index of the largest error

  Difference(const std::vector<double>& a, const std::vector<double>& b) : each(b.size()) {
    double squares = 0, product = 0, size = 0;
    for (size_t i = 0; i < b.size(); ++i) {
      if (i < a.size() && a[i] == b[i]) continue;  // includes equal infinities
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

Reference::Reference(const Results& results, RoundedRun run)
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
      RoundingEffect& sum = sums_[i];
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

Reference::RoundingEffect Reference::rounding_effect(size_t i, int roundings) {
  draw_until(roundings);
  RoundingEffect m = sums_[i];
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
    if (expected_.kind == Kind::integers)
      return off_.all == 0 ? j_ : wrong("integers must be equal");
    if (is_within_bar()) return j_;
    if (off_.all > most_excused()) return wrong("more than roundings can excuse");
    j_.verdict = Verdict::by_rounding;
    for (const int roundings : {kFew, kMore}) {
      j_.of_rounding = share_of_roundings(reference_.rounding_effect(i_, roundings));
      if (j_.of_rounding <= (roundings == kFew ? 1 : kRoundingFactor)) return j_;
    }
    if (!limit_.jumps || !jumps_as_far(reference_.rounding_effect(i_, kForJumps)))
      return wrong("more than the effect of roundings");
    j_.verdict = Verdict::by_jump;
    return j_;
  }

 private:
  bool is_zero() const { return size_ <= kNothing * largest_; }
  bool all_holds() const { return off_.all <= limit_.bar * size_; }
  bool along_holds() const { return is_zero() || off_.along <= kAlong * limit_.bar * size_; }
  bool holds(size_t j) const {
    const double own = std::isfinite(expected_.values[j]) ? std::abs(expected_.values[j]) : 0;
    return off_.each[j] <= kEach * limit_.bar * (size_ + own);
  }
  bool is_within_bar() const {
    if (!all_holds() || !along_holds()) return false;
    for (size_t j = 0; j < off_.each.size(); ++j)
      if (!holds(j)) return false;
    return true;
  }

  double most_excused() const {
    const double most = limit_.most * std::max(size_, kCancelled * largest_);
    return expected_.kind == Kind::value ? std::max(most, limit_.unit) : most;
  }
  // The largest error of a failed test, as a share of the effect of roundings.
  double share_of_roundings(const Reference::RoundingEffect& m) const {
    const double all = std::max(m.all, is_zero() ? kOfNothing * limit_.unit * largest_ : 0);
    double share = all_holds() ? 0 : off_.all / all;
    if (!along_holds()) share = std::max(share, off_.along / m.along);
    const double one = is_zero() ? kOneOfNothing * all : all;
    for (size_t j = 0; j < off_.each.size(); ++j)
      if (!holds(j)) share = std::max(share, off_.each[j] / std::hypot(one, m.each[j]));
    return share;
  }
  bool jumps_as_far(const Reference::RoundingEffect& m) const {
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
                  "relative error %.3g, along the reference %.3g, %.3g times the effect of "
                  "roundings; %.9g instead of %.9g at %zu of %zu: %s",
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

#include "eval/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "eval/ngrams.h"

namespace fovea {
namespace {

constexpr std::array<std::pair<std::string_view, BleuSmoothing>, 4> kSmoothings{
    {{"none", BleuSmoothing::none},
     {"floor", BleuSmoothing::floor},
     {"add-k", BleuSmoothing::add_k},
     {"exp", BleuSmoothing::exp}}};

double value_of(const BleuOptions& options) {
  return options.smooth_value.value_or(options.smooth == BleuSmoothing::floor ? 0.1 : 1.0);
}

// Returns log x. For x = 0 it returns a large negative number instead of −∞. So if an order of
// n-grams has no match, the score is 0.
double floored_log(double x) { return x == 0.0 ? -9999999999.0 : std::log(x); }

// Returns the length of the reference that is nearest to the length of the hypothesis. If two are
// equally near, returns the shorter length. `texts` holds the hypothesis and then its references.
size_t closest_length(size_t hypothesis, std::span<const std::vector<std::u32string_view>> texts) {
  auto distance = [=](size_t length) {
    return length > hypothesis ? length - hypothesis : hypothesis - length;
  };
  size_t best = texts[1].size();
  for (const auto& text : texts.subspan(2)) {
    size_t length = text.size();
    bool nearer = distance(length) < distance(best);
    if (nearer || (distance(length) == distance(best) && length < best)) best = length;
  }
  return best;
}

// Counts the n-grams of one segment (line) at a time. It reuses its memory for the next segment.
class SegmentCounter {
 public:
  explicit SegmentCounter(const BleuOptions& options) : options_(options) {}

  // `texts` holds the hypothesis and then its references. `row` [2 + 2 max_order] receives the
  // statistics; it must be 0 before the call.
  void count(std::span<const std::vector<std::u32string_view>> texts, double* row) {
    row[0] = static_cast<double>(texts[0].size());
    row[1] = static_cast<double>(closest_length(texts[0].size(), texts));
    ngrams_.start(texts);
    for (size_t n = 0; n < options_.max_order; ++n) {
      if (n > 0) ngrams_.advance();
      row[2 + n] = static_cast<double>(matches(texts.size()));
      row[2 + options_.max_order + n] = static_cast<double>(ngrams_.of(0).size());
    }
  }

 private:
  // Returns Σ_g min(count of g in the hypothesis, maximum count of g in a reference) over the
  // n-grams g.
  long matches(size_t texts) {
    allowed_.assign(ngrams_.distinct(), 0);
    for (size_t t = 1; t < texts; ++t) {
      count_ngrams(ngrams_.of(t), ngrams_.distinct(), counts_);
      for (size_t g = 0; g < counts_.size(); ++g) allowed_[g] = std::max(allowed_[g], counts_[g]);
    }
    long found = 0;
    for (uint32_t g : ngrams_.of(0))
      if (allowed_[g]-- > 0) ++found;
    return found;
  }

  const BleuOptions& options_;
  NgramTable ngrams_;
  std::vector<int> counts_, allowed_;
};

}  // namespace

BleuSmoothing bleu_smoothing(std::string_view name) {
  for (const auto& [known, smoothing] : kSmoothings)
    if (known == name) return smoothing;
  fail(ExitCode::usage, "unknown smoothing '", name, "': choose exp, floor, add-k or none");
}

Signature Bleu::settings() const {
  std::string smooth;
  for (const auto& [name, smoothing] : kSmoothings)
    if (smoothing == options_.smooth) smooth = name;
  if (options_.smooth == BleuSmoothing::floor || options_.smooth == BleuSmoothing::add_k)
    smooth += fmt::format("[{:.2f}]", value_of(options_));
  return {{"case", options_.lowercase ? "lc" : "mixed"},
          {"eff", options_.effective_order ? "yes" : "no"},
          {"tok", std::string(name_of(options_.tokenize))},
          {"smooth", smooth}};
}

SegmentStatistics Bleu::statistics(const Lines& hypotheses,
                                   std::span<const Lines> references) const {
  SegmentStatistics result{2 + 2 * options_.max_order, {}};
  result.values.resize(hypotheses.size() * result.width);
  SegmentCounter counter(options_);
  std::vector<Characters> tokenized(1 + references.size());
  std::vector<std::vector<std::u32string_view>> texts(1 + references.size());
  for (size_t s = 0; s < hypotheses.size(); ++s) {
    for (size_t t = 0; t < texts.size(); ++t) {
      Characters line = characters_of(t == 0 ? hypotheses[s] : references[t - 1][s]);
      if (options_.lowercase) line = lower_case(line);
      line = without_trailing_blanks(std::move(line));
      tokenized[t] = tokenize_for_bleu(options_.tokenize, line);
      texts[t] = words_of(tokenized[t]);
    }
    counter.count(texts, result.values.data() + s * result.width);
  }
  return result;
}

// c, r: length of the hypotheses and of the references; m_n, t_n: number of matches and of n-grams
// of order n
//   BP = 1 if c ≥ r, otherwise e^(1 − r/c)      p_n = 100 m_n / t_n
//   BLEU = BP exp(1/N Σ_n log p_n)
template <class Real>
BleuScore Bleu::compute(std::span<const Real> sums) const {
  size_t N = options_.max_order;
  auto k = value_of(options_);
  double c = std::trunc(sums[0]), r = std::trunc(sums[1]);
  BleuScore bleu;
  bleu.hypothesis_length = c;
  bleu.reference_length = r;
  bleu.brevity_penalty = c >= r ? 1.0 : c > 0 ? std::exp(1.0 - r / c) : 0.0;
  bleu.matches.assign(sums.begin() + 2, sums.begin() + 2 + static_cast<long>(N));
  bleu.totals.assign(sums.begin() + 2 + static_cast<long>(N), sums.end());
  bleu.precisions.assign(N, 0.0);
  if (std::all_of(bleu.matches.begin(), bleu.matches.end(), [](double m) { return m == 0; }))
    return bleu;

  double halving = 1.0;
  size_t effective = N;
  for (size_t n = 0; n < N; ++n) {
    double &m = bleu.matches[n], &t = bleu.totals[n], &p = bleu.precisions[n];
    if (options_.smooth == BleuSmoothing::add_k && n > 0) {
      m = static_cast<Real>(m + k);
      t = static_cast<Real>(t + k);
    }
    if (t == 0) break;
    if (options_.effective_order) effective = n + 1;
    if (m > 0) {
      p = 100.0 * m / t;
    } else if (options_.smooth == BleuSmoothing::exp) {
      p = 100.0 / ((halving *= 2) * t);
    } else if (options_.smooth == BleuSmoothing::floor) {
      p = 100.0 * k / t;
    }
  }
  double logs = 0;
  for (size_t n = 0; n < effective; ++n) logs += floored_log(bleu.precisions[n]);
  bleu.score = bleu.brevity_penalty * std::exp(logs / static_cast<double>(effective));
  return bleu;
}

double Bleu::score(std::span<const double> sums) const { return compute(sums).score; }
double Bleu::score(std::span<const float> sums) const { return compute(sums).score; }
BleuScore Bleu::detailed(std::span<const double> sums) const { return compute(sums); }

std::string Bleu::details(std::span<const double> sums) const {
  BleuScore bleu = compute(sums);
  std::string precisions;
  for (double p : bleu.precisions)
    precisions += fmt::format("{}{:.1f}", precisions.empty() ? "" : "/", p);
  double c = bleu.hypothesis_length, r = bleu.reference_length;
  return fmt::format("{} (BP = {:.3f} ratio = {:.3f} hyp_len = {:.0f} ref_len = {:.0f})",
                     precisions, bleu.brevity_penalty, r > 0 ? c / r : 0.0, c, r);
}

double bleu(const Lines& hypotheses, const Lines& references, const BleuOptions& options) {
  return corpus_score(Bleu(options), hypotheses, {&references, 1});
}

}  // namespace fovea

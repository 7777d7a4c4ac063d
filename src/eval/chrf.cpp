#include "eval/chrf.h"

#include <algorithm>

#include "eval/code_points.h"
#include "eval/ngrams.h"

namespace fovea {
namespace {

bool is_mark(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

// Returns the words of a line. If a word ends with a punctuation mark, this mark becomes a word of
// its own. Otherwise, if the word begins with a punctuation mark, that mark does.
std::vector<std::u32string_view> words_and_marks(std::u32string_view line) {
  std::vector<std::u32string_view> result;
  for (std::u32string_view word : words_of(line)) {
    size_t cut = word.size();
    if (word.size() > 1 && is_mark(word.back())) {
      cut = word.size() - 1;
    } else if (word.size() > 1 && is_mark(word.front())) {
      cut = 1;
    }
    result.push_back(word.substr(0, cut));
    if (cut < word.size()) result.push_back(word.substr(cut));
  }
  return result;
}

// Counts the n-grams of one segment (line) for each order: those of its hypothesis and of each
// reference.
class SegmentCounter {
 public:
  explicit SegmentCounter(const ChrfOptions& options)
      : options_(options), width_(3 * (options.char_order + options.word_order)) {}

  // `texts` holds the hypothesis and then its references. Returns one row of statistics per
  // reference.
  const std::vector<std::vector<double>>& count(const std::vector<Characters>& texts) {
    rows_.assign(texts.size() - 1, std::vector<double>(width_, 0.0));
    std::vector<Characters> characters = texts;
    if (!options_.whitespace)
      for (Characters& text : characters) std::erase_if(text, is_blank);
    ngrams_.start(characters);
    count_orders(0, options_.char_order);
    if (options_.word_order > 0) {
      std::vector<std::vector<std::u32string_view>> words;
      for (const Characters& text : texts) words.push_back(words_and_marks(text));
      ngrams_.start(words);
      count_orders(options_.char_order, options_.word_order);
    }
    return rows_;
  }

 private:
  void count_orders(size_t first, size_t orders) {
    for (size_t n = 0; n < orders; ++n) {
      if (n > 0) ngrams_.advance();
      for (size_t r = 0; r < rows_.size(); ++r) {
        const NgramTable::Sequence& reference = ngrams_.of(r + 1);
        if (reference.empty()) continue;  // an order that one side does not have is omitted
        count_ngrams(reference, ngrams_.distinct(), left_);
        long matches = 0;
        for (uint32_t g : ngrams_.of(0))
          if (left_[g]-- > 0) ++matches;
        double* row = rows_[r].data() + 3 * (first + n);
        row[0] = static_cast<double>(ngrams_.of(0).size());
        row[1] = static_cast<double>(reference.size());
        row[2] = static_cast<double>(matches);
      }
    }
  }

  const ChrfOptions& options_;
  size_t width_;
  NgramTable ngrams_;
  std::vector<int> left_;
  std::vector<std::vector<double>> rows_;
};

}  // namespace

std::string Chrf::name() const {
  return "chrF" + std::to_string(options_.beta) + std::string(options_.word_order, '+');
}

Signature Chrf::settings() const {
  return {{"case", options_.lowercase ? "lc" : "mixed"},
          {"eff", options_.eps_smoothing ? "no" : "yes"},
          {"nc", std::to_string(options_.char_order)},
          {"nw", std::to_string(options_.word_order)},
          {"space", options_.whitespace ? "yes" : "no"}};
}

SegmentStatistics Chrf::statistics(const Lines& hypotheses,
                                   std::span<const Lines> references) const {
  SegmentStatistics result{3 * (options_.char_order + options_.word_order), {}};
  result.values.reserve(hypotheses.size() * result.width);
  SegmentCounter counter(options_);
  std::vector<Characters> texts(1 + references.size());
  for (size_t s = 0; s < hypotheses.size(); ++s) {
    for (size_t t = 0; t < texts.size(); ++t) {
      texts[t] = characters_of(t == 0 ? hypotheses[s] : references[t - 1][s]);
      if (options_.lowercase) texts[t] = lower_case(texts[t]);
    }
    const auto& rows = counter.count(texts);
    const std::vector<double>* best = &rows[0];
    for (const auto& row : rows)
      if (score(std::span<const double>(row)) > score(std::span<const double>(*best))) best = &row;
    result.values.insert(result.values.end(), best->begin(), best->end());
  }
  return result;
}

// For each order, P = matches / n-grams of the hypothesis and R = matches / n-grams of the
// reference. P and R are then averaged over the orders that both sides have, and F = (1 + β²) P R /
// (β² P + R).
template <class Real>
double Chrf::compute(std::span<const Real> sums) const {
  constexpr double kEpsilon = 1e-16;
  size_t orders = sums.size() / 3, effective = 0;
  double beta2 = static_cast<double>(options_.beta) * options_.beta;
  auto F = [=](double P, double R) { return (1 + beta2) * P * R / (beta2 * P + R); };
  double mean_P = 0, mean_R = 0, sum_F = 0;
  for (size_t n = 0; n < orders; ++n) {
    Real hypothesis = sums[3 * n], reference = sums[3 * n + 1], matches = sums[3 * n + 2];
    double P = hypothesis > 0 ? static_cast<double>(matches / hypothesis) : kEpsilon;
    double R = reference > 0 ? static_cast<double>(matches / reference) : kEpsilon;
    sum_F += beta2 * P + R > 0 ? F(P, R) : kEpsilon;
    if (hypothesis > 0 && reference > 0) {
      mean_P += P;
      mean_R += R;
      ++effective;
    }
  }
  if (options_.eps_smoothing) return 100 * sum_F / static_cast<double>(orders);
  if (mean_P + mean_R == 0) return 0;
  return 100 * F(mean_P / static_cast<double>(effective), mean_R / static_cast<double>(effective));
}

double Chrf::score(std::span<const double> sums) const { return compute(sums); }
double Chrf::score(std::span<const float> sums) const { return compute(sums); }

double chrf(const Lines& hypotheses, const Lines& references, const ChrfOptions& options) {
  return corpus_score(Chrf(options), hypotheses, {&references, 1});
}

}  // namespace fovea

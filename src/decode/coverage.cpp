#include <algorithm>
#include <cmath>

#include "decode/attention_alignment.h"
#include "decode/framed_attention.h"
#include "decode/search.h"

namespace fovea {

void add_coverage(std::span<const Model* const> models, std::span<const int32_t> source,
                  double beta, std::vector<Hypothesis>& hypotheses) {
  std::vector<TextPair> pairs;
  for (const Hypothesis& h : hypotheses)
    pairs.push_back(
        {source.first(source.size() - 1), std::span(h.words).first(h.words.size() - 1)});
  for (const Model* model : models) {
    const auto maps = attention_of(*model, pairs);
    for (size_t n = 0; n < hypotheses.size(); ++n) {
      const SoftAlignment a = mean_attention(maps[n], "cross");
      double penalty = 0;
      for (int64_t j = 0; j + 1 < a.cols; ++j) {
        double covered = 0;
        for (int64_t i = 0; i < a.rows; ++i) covered += a.at(i, j);
        penalty += std::log(std::clamp(covered, 1e-9, 1.0));
      }
      hypotheses[n].score += beta * penalty / static_cast<double>(models.size());
    }
  }
  std::ranges::sort(hypotheses, ranks_before);
}

}  // namespace fovea

#include <algorithm>
#include <cmath>

#include "decode/attention_alignment.h"
#include "decode/model_capabilities.h"
#include "decode/search.h"
#include "text/batch.h"

namespace fovea {

void add_coverage(std::span<const Model* const> models, std::span<const int32_t> source,
                  double beta, std::vector<Hypothesis>& hypotheses) {
  PackedSentences sources, targets;
  for (const Hypothesis& h : hypotheses) {
    sources.add(source, PackedSentences::Mark::none);
    targets.add(std::span(h.words).first(h.words.size() - 1), PackedSentences::Mark::bos_before);
  }
  for (const Model* model : models) {
    const auto maps =
        attentive(*model).attention({sources.ids, sources.offsets}, {targets.ids, targets.offsets});
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

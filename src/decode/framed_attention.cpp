#include "decode/framed_attention.h"

#include <algorithm>

#include "decode/model_capabilities.h"
#include "text/batch.h"

namespace fovea {
namespace {

// The positions of a framed sentence that a picture shows: `first` … `first` + `count`. Positions
// from `there` on do not exist.
struct ShownRange {
  int64_t first, count, there;
};

// </s> follows the pieces of a source at once, or the model does not read it there.
bool reads_end(const SentenceFrame& frame) {
  return frame.source_suffix.empty() ? frame.source_end : frame.source_suffix.front() == kEos;
}

ShownRange shown_source(const SentenceFrame& frame, int64_t pieces) {
  const auto first = std::ssize(frame.source_prefix);
  return {first, pieces + 1, first + pieces + (reads_end(frame) ? 1 : 0)};
}

ShownRange shown_target(const SentenceFrame& frame, int64_t words) {
  const auto first = std::ssize(frame.target_prefix);
  return {first, words + 1, first + words + 1};
}

// The shown part of a matrix with `cols` columns.
std::vector<float> part(std::span<const float> matrix, int64_t cols, const ShownRange& rows,
                        const ShownRange& columns) {
  std::vector<float> shown;
  for (int64_t i = rows.first; i < rows.first + rows.count; ++i)
    for (int64_t j = columns.first; j < columns.first + columns.count; ++j)
      shown.push_back(i < rows.there && j < columns.there ? matrix[i * cols + j] : 0.0f);
  return shown;
}

AttentionMap shown(const AttentionMap& map, const ShownRange& rows, const ShownRange& columns) {
  AttentionMap result = map;
  result.rows = rows.count;
  result.cols = columns.count;
  result.weights = part(map.weights, map.cols, rows, columns);
  for (NamedSeries& series : result.series) {
    if (!series.of_rows()) continue;
    const int64_t width = std::ssize(series.values) / map.rows;
    if (series.kind == NamedSeries::Kind::distribution) {
      series.values = part(series.values, width, rows, columns);
    } else {  // positions and columns
      series.values = part(series.values, width, rows, {0, width, width});
      for (float& x : series.values) x = std::max(0.0f, x - static_cast<float>(columns.first));
    }
  }
  return result;
}

}  // namespace

std::vector<std::vector<AttentionMap>> attention_of(const Model& model,
                                                    std::span<const TextPair> pairs) {
  const SentenceFrame& frame = model.frame();
  PackedSentences source, target;
  for (const TextPair& pair : pairs) {
    source.add_source(pair.source, frame);
    target.add_target_in(pair.target, frame);
  }
  auto all = attentive(model).attention({source.ids, source.offsets}, {target.ids, target.offsets});
  if (frame == SentenceFrame{.start = frame.start}) return all;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const ShownRange from = shown_source(frame, std::ssize(pairs[i].source));
    const ShownRange to = shown_target(frame, std::ssize(pairs[i].target));
    for (AttentionMap& map : all[i])
      map = shown(map, map.kind == "encoder" ? from : to, map.kind == "decoder" ? to : from);
  }
  return all;
}

WhatIf in_frame(const WhatIf& what_if, int64_t pieces, const SentenceFrame& frame) {
  const ShownRange range = shown_source(frame, pieces - 1);
  const int64_t length = pieces - 1 + frame.source_pieces();
  const auto at = [&](int64_t piece) {
    check(range.first + piece < range.there, ExitCode::usage,
          "the model does not read the </s> of a source; choose another word");
    return range.first + piece;
  };
  WhatIf framed = what_if;
  for (int32_t& position : framed.masked) position = static_cast<int32_t>(at(position));
  for (WhatIf::Row& row : framed.forced) {
    row.step += std::ssize(frame.target_prefix);
    std::vector<double> weights(static_cast<size_t>(length));
    for (int64_t i = 0; i < pieces; ++i)
      if (row.weights[i] != 0) weights[at(i)] = row.weights[i];
    row.weights = std::move(weights);
  }
  return framed;
}

}  // namespace fovea

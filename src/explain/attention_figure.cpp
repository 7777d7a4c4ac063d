#include "explain/attention_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "decode/generation_defaults.h"
#include "explain/row_explanation.h"

namespace fovea {

AttentionFigure::AttentionFigure(const ModelBundle& bundle, std::span<const int32_t> source,
                                 std::span<const int32_t> target,
                                 std::span<const AttentionMap> maps, FigureChoice choice)
    : choice_(std::move(choice)) {
  if (const auto* own = bundle.config.as<RecurrentConfig>(); own && own->attention.kind == "global")
    score_ = ", score " + own->attention.score_name();
  const bool reads_target = choice_.kind == "decoder";
  const SentenceFrame frame =
      sentence_frame(bundle.config.generation, bundle.source, bundle.target);
  const std::vector<int32_t> read = read_before(target, frame);
  rows_ = choice_.kind == "encoder"
              ? picture_side(bundle.source, source, choice_.unit)
              : picture_side(bundle.target, reads_target ? std::span<const int32_t>(read) : target,
                             choice_.unit);
  cols_ = reads_target ? rows_ : picture_side(bundle.source, source, choice_.unit);
  for (const AttentionMap& map : maps)
    if (map.kind == choice_.kind) maps_.push_back(map);
  check(!maps_.empty() || choice_.kind != "cross", ExitCode::usage,
        "the model has no attention from target to source; choose another model with `model`");
  check(!maps_.empty(), ExitCode::usage, "`kind` ", choice_.kind,
        ": the model has no attention of this kind");
  for (const AttentionMap& map : maps_) {
    layers_ = std::max(layers_, map.layer + 1);
    heads_ = std::max(heads_, map.head + 1);
  }
  check(choice_.layer < layers_, ExitCode::usage, "`layer` ", choice_.layer,
        ": the model has layers 0 to ", layers_ - 1);
  check(choice_.head < heads_, ExitCode::usage, "`head` ", choice_.head,
        ": the model has heads 0 to ", heads_ - 1);
}

AttentionMatrix AttentionFigure::matrix(int64_t layer, int64_t head) const {
  std::vector<AttentionMap> chosen;
  for (const AttentionMap& map : maps_)
    if ((layer < 0 || map.layer == layer) && (head < 0 || map.head == head)) chosen.push_back(map);
  return attention_picture(chosen, rows_, cols_, title(layer, head));
}

AttentionGrid AttentionFigure::grid() const {
  AttentionGrid grid;
  grid.title = choice_.kind + " attention";
  for (int64_t layer = 0; layer < layers_; ++layer) {
    grid.layers.emplace_back();
    for (int64_t head = 0; head < heads_; ++head) grid.layers.back().push_back(matrix(layer, head));
  }
  return grid;
}

std::string AttentionFigure::title(int64_t layer, int64_t head) const {
  if (!maps_.front().mechanism.empty()) return maps_.front().mechanism + " attention" + score_;
  const std::string which = layer < 0 ? "mean of all layers" : fmt::format("layer {}", layer);
  const std::string part = head < 0 ? "mean of heads" : fmt::format("head {}", head);
  return fmt::format("{} attention, {}, {}", choice_.kind, which, part);
}

}  // namespace fovea

#include "explain/row_explanation.h"

#include "decode/model_capabilities.h"
#include "text/batch.h"

namespace fovea {

std::string mechanism_of(const ModelConfig& config) {
  const auto* own = config.as<RecurrentConfig>();
  if (!own) return "";
  const AttentionConfig& a = own->attention;
  check(a.attends(), ExitCode::usage, "this model was trained without attention");
  return a.kind + " attention" + (a.has_score() ? ", score " + a.score_name() : "");
}

std::vector<int32_t> read_before(std::span<const int32_t> target, const SentenceFrame& frame) {
  std::vector<int32_t> read{frame.before_first()};
  if (!target.empty()) read.insert(read.end(), target.begin(), target.end() - 1);
  return read;
}

RowExplanation explain_row(const ModelBundle& package, std::span<const int32_t> source,
                           std::span<const int32_t> target, const AttentionRow& row) {
  const ModelConfig& config = package.config;
  RowExplanation found{row, mechanism_of(config)};
  const auto [layers, heads] = heads_of(config, row.kind);
  check(layers > 0, ExitCode::usage, row.kind, ": this model has no such attention");
  check(row.layer >= 0 && row.layer < layers, ExitCode::usage, "layer ", row.layer,
        ": the model has layers 0 to ", layers - 1);
  check(row.head >= 0 && row.head < heads, ExitCode::usage, "head ", row.head,
        ": the model has heads 0 to ", heads - 1);

  const SentenceFrame& frame = package.model->frame();
  const std::vector<int32_t> read = read_before(target, frame);
  found.asking = row.kind == "encoder" ? package.source.pieces(source)
                 : row.kind == "cross" ? package.target.pieces(target)
                                       : package.target.pieces(read);
  check(row.row >= 0 && row.row < std::ssize(found.asking), ExitCode::usage, "row ", row.row,
        ": there are rows 0 to ", std::ssize(found.asking) - 1);
  PackedSentences from, to;  // with all pieces of the frame
  from.add_source(source.first(source.size() - 1), frame);
  to.add_target_in(target.first(target.size() - 1), frame);
  AttentionRow framed = row;
  framed.row += std::ssize(row.kind == "encoder" ? frame.source_prefix : frame.target_prefix);
  found.pieces =
      row.kind == "decoder" ? package.target.pieces(to.ids) : package.source.pieces(from.ids);
  if (row.kind == "decoder") found.pieces.resize(static_cast<size_t>(framed.row) + 1);
  check(framed.row < std::ssize(row.kind == "encoder" ? from.ids : to.ids), ExitCode::usage, "row ",
        row.row, ": the model does not read the </s> of a source; choose another row");
  found.steps =
      explainable(*package.model).explain({from.ids, from.offsets}, {to.ids, to.offsets}, framed);
  return found;
}

}  // namespace fovea

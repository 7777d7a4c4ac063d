#include "decode/explained.h"

#include "models/what_if.h"
#include "text/batch.h"

namespace fovea {

std::string mechanism_of(const ModelConfig& config) {
  if (config.type != "recurrent") return "";
  check(config.attention.attends(), Exit::usage, "this model was trained without attention");
  std::string name = config.attention.kind + " attention";
  if (config.attention.kind != "window") name += ", score " + config.attention.score_name();
  return name;
}

std::vector<int32_t> read_before(std::span<const int32_t> target) {
  std::vector<int32_t> read{kBos};
  if (!target.empty()) read.insert(read.end(), target.begin(), target.end() - 1);
  return read;
}

Explained explain_row(const Package& package, std::span<const int32_t> source,
                      std::span<const int32_t> target, const AttentionRow& row) {
  const ModelConfig& config = package.config;
  Explained found{row, mechanism_of(config)};
  const auto [layers, heads] = heads_of(config, row.kind);
  check(layers > 0, Exit::usage, row.kind, ": this model has no such attention");
  check(row.layer >= 0 && row.layer < layers, Exit::usage, "layer ", row.layer,
        ": the model has layers 0 to ", layers - 1);
  check(row.head >= 0 && row.head < heads, Exit::usage, "head ", row.head,
        ": the model has heads 0 to ", heads - 1);

  const std::vector<int32_t> read = read_before(target);
  found.asking = row.kind == "encoder" ? package.source.pieces(source)
                 : row.kind == "cross" ? package.target.pieces(target)
                                       : package.target.pieces(read);
  check(row.row >= 0 && row.row < std::ssize(found.asking), Exit::usage, "row ", row.row,
        ": there are rows 0 to ", std::ssize(found.asking) - 1);
  found.pieces = row.kind == "decoder" ? found.asking : package.source.pieces(source);
  if (row.kind == "decoder") found.pieces.resize(static_cast<size_t>(row.row) + 1);

  Packed from, to;
  from.add(source, Packed::Mark::none);
  to.add(read, Packed::Mark::none);
  found.steps = package.model->explain({from.ids, from.offsets}, {to.ids, to.offsets}, row);
  return found;
}

}  // namespace fovea

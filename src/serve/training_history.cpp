#include "serve/training_history.h"

#include <fmt/format.h>

#include <cmath>

#include "serve/json_reply.h"

namespace fovea {
namespace {
using Json = nlohmann::ordered_json;
}

// The metrics by kind and name, as pairs [update, value].
struct TrainingHistory::Curves {
  Json all = Json::object();
  std::string text = "{}";
};

std::string TrainingHistory::json() const {
  if (!curves_) curves_ = std::make_shared<Curves>();
  const bool more = running();  // called first, so that the answer about an ended run is complete
  const News added = news();
  if (added.restarted) curves_->all = Json::object();
  for (const TrainingLine& line : added.lines)
    for (const auto& [name, value] : line.values)
      if (std::isfinite(value)) curves_->all[line.kind][name].push_back({line.update, value});
  if (added.restarted || !added.lines.empty()) curves_->text = json_text(curves_->all);
  return fmt::format(R"({{"running":{},"updates":{},"curves":{}}})", more, Json(updates()).dump(),
                     curves_->text);
}

}  // namespace fovea

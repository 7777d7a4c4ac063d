#include "serve/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "decode/explained.h"
#include "serve/attention_json.h"
#include "serve/refusal.h"
#include "serve/service.h"
#include "text/batch.h"

// How a model came to look where it looks: its curves, and one pair at each update that was kept.
namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kReading = 4 * kTurnAlone;  // what reading a model counts for

void check_trained(const Engine& engine) {
  if (!engine.training())
    throw Refusal(404, "Nothing is known of how this model was trained; fovea serve --run tells");
}

// The translation that is given, as if the model had written it.
Translation forced(const Package& package, const std::string& text, const std::string& target) {
  const auto encoded = [&](const Vocabulary& vocabulary, const std::string& line) {
    std::vector<int32_t> ids = vocabulary.encode(line);
    ids.resize(std::min(ids.size(), static_cast<size_t>(package.model->max_length()) - 1));
    ids.push_back(kEos);
    return ids;
  };
  Translation pair;
  pair.text = target;
  pair.source_ids = encoded(package.source, text);
  Alternative& best = pair.n_best.emplace_back();
  best.text = target;
  best.ids = encoded(package.target, target);
  best.pieces = package.target.pieces(best.ids);
  best.log_probs.resize(best.ids.size());
  Packed from, to;
  from.add(pair.source_ids, Packed::Mark::none);
  to.add(read_before(best.ids), Packed::Mark::none);
  pair.attention = package.model->attention({from.ids, from.offsets}, {to.ids, to.offsets}).front();
  return pair;
}

}  // namespace

// Every number by kind and name: [update, value].
struct Training::Curves {
  Json all = Json::object();
  std::string text = "{}";
};

std::string Training::told() const {
  if (!curves_) curves_ = std::make_shared<Curves>();
  const bool more = running();  // asked first: of a run that has ended, all is told
  const News added = news();
  if (added.anew) curves_->all = Json::object();
  for (const TrainingLine& line : added.lines)
    for (const auto& [name, value] : line.values)
      if (std::isfinite(value)) curves_->all[line.kind][name].push_back({line.update, value});
  if (added.anew || !added.lines.empty())
    curves_->text = curves_->all.dump(-1, ' ', false, Json::error_handler_t::replace);
  return fmt::format(R"({{"running":{},"updates":{},"curves":{}}})", more, Json(updates()).dump(),
                     curves_->text);
}

void Service::training(Call call) {
  const auto engine = engine_of(call, call.parameters());
  check_trained(*engine);
  compute(call, kTurnAlone, [engine] { return Reply{.body = engine->training()->told()}; });
}

void Service::trained_attention(Call call) {
  const Parameters& parameters = call.parameters();
  const auto text = parameters.text("q"), target = parameters.text("translation");
  const auto update = parameters.integer("update", {0, 1e15});
  const bool given[] = {text.has_value(), target.has_value(), update.has_value()};
  const char* const names[] = {"q", "translation", "update"};
  for (size_t i = 0; i < std::size(given); ++i)
    if (!given[i])
      throw Refusal(400, fmt::format("Invalid request: missing {} parameter", names[i]));
  check_size({*text, *target});
  const auto engine = engine_of(call, parameters);
  check_trained(*engine);
  compute(call, kReading, [engine, update = *update, text = *text, target = *target] {
    const auto then = engine->training()->after(update);
    if (!then)
      throw Refusal(404, fmt::format("The model as it was after update {} was not kept, or was "
                                     "deleted since; /v1/training lists those that are there, and "
                                     "'fovea train --set checkpoint.keep=100' keeps more",
                                     update));
    const Translation pair = forced(then->package(), text, target);
    if (bytes_of_maps(pair.attention) > kMaxAttentionBytes)
      throw Refusal(400, attention_too_large());
    Json reply = attention_json(*then, text, pair);
    for (const char* of_a_search : {"steps", "beam"}) reply.erase(of_a_search);
    return json_reply(reply);
  });
}

}  // namespace fovea

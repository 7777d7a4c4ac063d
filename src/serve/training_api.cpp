#include "serve/training_api.h"

#include <fmt/format.h>

#include <algorithm>

#include "decode/framed_attention.h"
#include "http/http_error.h"
#include "http/json_reply.h"
#include "serve/attention_json.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kReadingCost = 4 * kAloneCost;  // the cost of reading a checkpoint

void check_trained(const ServedModel& model) {
  if (!model.training())
    throw HttpError(404,
                    "This model has no training history; give the server its directory with `run`");
}

// Returns the given translation with the attention of the model, by forced decoding.
Translation forced(const ModelBundle& package, const std::string& text, const std::string& target) {
  const auto encoded = [&](const Vocabulary& vocabulary, const std::string& line) {
    std::vector<int32_t> ids = vocabulary.encode(line);
    const Model& model = *package.model;
    const int64_t longest = model.max_length() - model.frame().added_pieces();
    ids.resize(std::min(ids.size(), static_cast<size_t>(longest)));
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
  const auto without_end = [](std::span<const int32_t> ids) { return ids.first(ids.size() - 1); };
  const TextPair texts{without_end(pair.source_ids), without_end(best.ids)};
  pair.attention = attention_of(*package.model, std::span(&texts, 1)).front();
  return pair;
}

}  // namespace

std::vector<Route> TrainingApi::routes() {
  using enum AccessRule;
  using enum AnswerKind;
  return {{"GET", "/v1/training", key, computed, [this](auto& context) { curves(context); }},
          {"POST", "/v1/training/attention", key, computed,
           [this](auto& context) { attention(context); }}};
}

void TrainingApi::curves(RequestContext& context) {
  const auto model = model_of(context);
  check_trained(*model);
  queue_.compute(context, kAloneCost,
                 [model] { return HttpReply{.body = model->training()->json()}; });
}

void TrainingApi::attention(RequestContext& context) {
  const RequestParameters& parameters = context.parameters();
  const auto text = parameters.text("q"), target = parameters.text("translation");
  const auto update = parameters.integer("update", {0, 1e15});
  const bool given[] = {text.has_value(), target.has_value(), update.has_value()};
  const char* const names[] = {"q", "translation", "update"};
  for (size_t i = 0; i < std::size(given); ++i)
    if (!given[i])
      throw HttpError(400, fmt::format("Invalid request: missing {} parameter", names[i]));
  limits_.check_size({*text, *target});
  const auto model = model_of(context);
  check_trained(*model);
  queue_.compute(context, kReadingCost, [model, update = *update, text = *text, target = *target] {
    const auto then = model->training()->after(update);
    if (!then)
      throw HttpError(404, fmt::format("The model after update {} was not saved, or was deleted; "
                                       "/v1/training lists the saved updates, and "
                                       "a larger `checkpoint.keep` of the training keeps more",
                                       update));
    const Translation pair = forced(then->package(), text, target);
    if (bytes_of_maps(pair.attention) > kMaxAttentionBytes)
      throw HttpError(400, attention_too_large());
    Json reply = attention_json(*then, text, pair);
    for (const char* of_a_search : {"steps", "beam"}) reply.erase(of_a_search);
    return json_reply(reply);
  });
}

}  // namespace fovea

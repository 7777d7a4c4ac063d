#include "serve/explain_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "base/base64.h"
#include "explain/row_explanation.h"
#include "explain/steps_json.h"
#include "http/http_error.h"
#include "http/json_reply.h"
#include "models/transformer.h"
#include "serve/attention_json.h"
#include "view/principal_plane.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostRows = 1 << 20;
constexpr double kMostPositions = 512;
constexpr double kMostNeighbours = 50;
constexpr size_t kMostWords = 40;
constexpr int64_t kMostPoints = 400;  // maximum points of a map; the time grows with their square

// The names of Positions, in their order.
constexpr const char* kPositions[] = {"interleaved", "half",     "half-m1",
                                      "learned",     "relative", "none"};

Json explained_json(const ServedModel& model, const Translation& translation,
                    const AttentionRow& row) {
  const std::vector<int32_t>& target = translation.n_best.front().ids;
  const RowExplanation found = explain_row(model.package(), translation.source_ids, target, row);
  return {{"kind", row.kind},
          {"layer", row.layer},
          {"head", row.head},
          {"row", row.row},
          {"mechanism", found.mechanism.empty() ? "multi-head" : found.mechanism},
          {"translation", translation.text},
          {"asking", found.asking},
          {"pieces", found.pieces},
          {"steps", steps_json(found.steps)}};
}

LanguageSide side_of(const RequestParameters& parameters) {
  const std::string side = parameters.text("side").value_or("source");
  if (side != "source" && side != "target")
    throw HttpError(400, "Invalid request: side must be source or target");
  return side == "source" ? LanguageSide::source : LanguageSide::target;
}

std::string float_bytes(std::span<const double> values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(values[i]);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return base64(bytes);
}

Json positions_json(const ServedModel& model, LanguageSide side, int64_t count) {
  const auto* transformer = dynamic_cast<const Transformer*>(model.package().model.get());
  Tensor table;
  if (transformer && transformer->config().positions != Positions::none)
    table = (side == LanguageSide::source ? transformer->embed_source : transformer->embed_target)
                .positions(count);
  const Positions kind = table ? transformer->config().positions : Positions::none;
  const int64_t rows = table ? std::min(count, table.size(0)) : 0;
  std::vector<double> values = table ? table.values() : std::vector<double>{};
  values.resize(static_cast<size_t>(rows * (table ? table.size(1) : 0)));
  return {{"kind", kPositions[static_cast<size_t>(kind)]},
          {"rows", rows},
          {"size", table ? table.size(1) : 0},
          {"data", float_bytes(values)}};
}

// Returns the words of a request, their neighbours, and the coordinates of all these words on a
// map.
Json neighbours_json(const WordIndex& words, const std::vector<std::string>& asked, int64_t count) {
  Json list = Json::array(), unknown = Json::array(), map = Json::array();
  std::map<int64_t, size_t> groups;  // each word once, in the group that found it first
  std::vector<int64_t> found;
  for (const std::string& typed : asked) {
    const int64_t at = find_typed(words.vectors, typed);
    if (at < 0) {
      unknown.push_back(typed);
    } else if (groups.emplace(at, found.size()).second) {
      found.push_back(at);
    }
  }
  const std::map<int64_t, size_t> centres = groups;
  for (size_t g = 0; g < found.size(); ++g) {
    Json near = Json::array();
    if (count > 0)
      for (const auto& n : words.search.nearest(words.vectors.vector(found[g]), count, found[g])) {
        near.push_back({{"word", words.vectors.word(n.word)}, {"cosine", rounded(n.cosine)}});
        groups.emplace(n.word, g);
      }
    list.push_back({{"word", words.vectors.word(found[g])}, {"neighbours", std::move(near)}});
  }
  std::vector<std::vector<double>> directions;
  for (const auto& [word, group] : groups)
    directions.push_back(direction(words.vectors.vector(word)));
  const auto plane = principal_plane(directions);
  size_t i = 0;
  for (const auto& [word, group] : groups) {
    map.push_back({{"word", words.vectors.word(word)},
                   {"x", rounded(plane[i][0])},
                   {"y", rounded(plane[i][1])},
                   {"group", group},
                   {"centre", centres.contains(word)}});
    ++i;
  }
  return {{"words", std::move(list)}, {"unknown", std::move(unknown)}, {"map", std::move(map)}};
}

}  // namespace

std::vector<Route> ExplainApi::routes() {
  using enum AccessRule;
  using enum AnswerKind;
  return {
      {"POST", "/v1/explain", key, computed, [this](auto& context) { explain(context); }},
      {"GET", "/v1/positions", key, computed, [this](auto& context) { positions(context); }},
      {"POST", "/v1/neighbours", key, computed, [this](auto& context) { neighbours(context); }}};
}

void ExplainApi::explain(RequestContext& context) {
  const RequestParameters& parameters = context.parameters();
  const TranslateRequestPtr request = read_translate_request(context, limits_);
  if (!request->model) throw HttpError(400, "Invalid request: source and target are the same");
  if (request->texts.size() != 1) throw HttpError(400, "Invalid request: q must be one text");
  const auto number = [&](const char* name) {
    return parameters.integer(name, {0, kMostRows}).value_or(0);
  };
  request->only = static_cast<size_t>(number("sentence"));
  request->decoding.attention = false;
  const AttentionRow row{parameters.text("kind").value_or("cross"), number("layer"), number("head"),
                         number("row")};
  const auto render = [row](const TranslateRequest& done, const TranslationList& all) {
    if (!done.decoding.what_if.empty())  // explain_row does not support interventions
      throw HttpError(
          400, "Invalid request: mask_words, mask_heads and force_attention cannot be explained");
    if (all.front().n_best.empty())
      throw HttpError(400, "Invalid request: there is nothing to translate");
    try {
      return json_reply(explained_json(*done.model, all.front(), row));
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) throw;
      throw HttpError(400, std::string("Invalid request: ") + error.what());
    }
  };
  queue_.submit(context, request, render);
}

void ExplainApi::positions(RequestContext& context) {
  const RequestParameters& parameters = context.parameters();
  const auto model = model_of(context);
  const LanguageSide side = side_of(parameters);
  const int64_t count = parameters.integer("count", {1, kMostPositions}).value_or(64);
  queue_.compute(context, kAloneCost,
                 [=] { return json_reply(positions_json(*model, side, count)); });
}

void ExplainApi::neighbours(RequestContext& context) {
  const RequestParameters& parameters = context.parameters();
  const auto model = model_of(context);
  const auto words = parameters.texts("words");
  if (!words) throw HttpError(400, "Invalid request: missing words parameter");
  if (words->values.size() > kMostWords)
    throw HttpError(400,
                    fmt::format("Invalid request: words has more than {} entries", kMostWords));
  limits_.check_size(words->values);
  const LanguageSide side = side_of(parameters);
  const int64_t count = parameters.integer("count", {0, kMostNeighbours}).value_or(10);
  const int64_t points = std::ssize(words->values) * (1 + count);
  if (points > kMostPoints)
    throw HttpError(400, fmt::format("Invalid request: {} words with {} neighbours each are {} "
                                     "points, a map has at most {}",
                                     words->values.size(), count, points, kMostPoints));
  queue_.compute(context, kAloneCost, [=, asked = words->values] {
    return json_reply(neighbours_json(model->words(side), asked, count));
  });
}

}  // namespace fovea

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "decode/explained.h"
#include "models/transformer.h"
#include "serve/attention_json.h"
#include "serve/refusal.h"
#include "serve/service.h"
#include "view/principal_plane.h"
#include "view/steps_json.h"

// What a model has inside: one row of attention number by number, its positions, its words.
namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostRows = 1 << 20;
constexpr double kMostPositions = 512;
constexpr double kMostNeighbours = 50;
constexpr size_t kMostWords = 40;
constexpr int64_t kMostPoints = 400;  // of a map, whose making grows with their square

double rounded(double value) { return std::round(value * 1e6) / 1e6; }

Json explained_json(const Engine& engine, const Translation& translation, const AttentionRow& row) {
  const std::vector<int32_t>& target = translation.n_best.front().ids;
  const Explained found = explain_row(engine.package(), translation.source_ids, target, row);
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

Side side_of(const Parameters& parameters) {
  const std::string side = parameters.text("side").value_or("source");
  if (side != "source" && side != "target")
    throw Refusal(400, "Invalid request: side is source or target");
  return side == "source" ? Side::source : Side::target;
}

const char* name_of(Positions positions) {
  switch (positions) {
    case Positions::interleaved:
      return "interleaved";
    case Positions::half:
      return "half";
    case Positions::half_m1:
      return "half-m1";
    case Positions::learned:
      return "learned";
    case Positions::none:
      break;
  }
  return "none";
}

std::string float_bytes(std::span<const double> values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  for (size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>(values[i]);
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return base64(bytes);
}

Json positions_json(const Engine& engine, Side side, int64_t count) {
  const auto* model = dynamic_cast<const Transformer*>(engine.package().model.get());
  Tensor table;
  if (model && model->config().positions != Positions::none)
    table = (side == Side::source ? model->embed_source : model->embed_target).positions(count);
  const Positions kind = table ? model->config().positions : Positions::none;
  const int64_t rows = table ? std::min(count, table.size(0)) : 0;
  std::vector<double> values = table ? table.values() : std::vector<double>{};
  values.resize(static_cast<size_t>(rows * (table ? table.size(1) : 0)));
  return {{"kind", name_of(kind)},
          {"rows", rows},
          {"size", table ? table.size(1) : 0},
          {"data", float_bytes(values)}};
}

// Words of a request and those like them, and where all of them stand on a map.
Json neighbours_json(const Words& words, const std::vector<std::string>& asked, int64_t count) {
  Json list = Json::array(), unknown = Json::array(), map = Json::array();
  std::map<int64_t, size_t> groups;  // each word once, in the group of the first that found it
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

void Service::explain(Call call) {
  const Parameters& parameters = call.parameters();
  const Orders order = read_order(call, parameters);
  if (!order->engine) throw Refusal(400, "Invalid request: source and target are the same");
  if (order->texts.size() != 1) throw Refusal(400, "Invalid request: q is not one text");
  const auto number = [&](const char* name) {
    return parameters.integer(name, {0, kMostRows}).value_or(0);
  };
  order->only = static_cast<size_t>(number("sentence"));
  order->wish.attention = false;
  order->alone = true;
  const AttentionRow row{parameters.text("kind").value_or("cross"), number("layer"), number("head"),
                         number("row")};
  submit(call, order, [row](const Order& done, const Translations& all) {
    if (!done.wish.what_if.empty())  // explain_row knows nothing of them
      return error_reply(
          400, "Invalid request: mask_words, mask_heads and force_attention are not explained");
    if (all.front().n_best.empty())
      return error_reply(400, "Invalid request: there is nothing to translate");
    try {
      return json_reply(explained_json(*done.engine, all.front(), row));
    } catch (const Error& error) {
      if (error.code() != Exit::usage) throw;
      return error_reply(400, std::string("Invalid request: ") + error.what());
    }
  });
}

void Service::positions(Call call) {
  const Parameters& parameters = call.parameters();
  const auto engine = engine_of(call, parameters);
  const Side side = side_of(parameters);
  const int64_t count = parameters.integer("count", {1, kMostPositions}).value_or(64);
  compute(call, kTurnAlone, [=] { return json_reply(positions_json(*engine, side, count)); });
}

void Service::neighbours(Call call) {
  const Parameters& parameters = call.parameters();
  const auto engine = engine_of(call, parameters);
  const auto words = parameters.texts("words");
  if (!words) throw Refusal(400, "Invalid request: missing words parameter");
  if (words->values.size() > kMostWords)
    throw Refusal(400, fmt::format("Invalid request: more than {} words", kMostWords));
  check_size(words->values);
  const Side side = side_of(parameters);
  const int64_t count = parameters.integer("count", {0, kMostNeighbours}).value_or(10);
  const int64_t points = std::ssize(words->values) * (1 + count);
  if (points > kMostPoints)
    throw Refusal(400,
                  fmt::format("Invalid request: {} words with {} neighbours each are {}, and a "
                              "map has {} at most",
                              words->values.size(), count, points, kMostPoints));
  compute(call, kTurnAlone, [=, asked = words->values] {
    return json_reply(neighbours_json(engine->words(side), asked, count));
  });
}

}  // namespace fovea

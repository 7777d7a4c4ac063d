#include "serve/attention_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/base64.h"
#include "decode/attention_alignment.h"
#include "decode/model_capabilities.h"
#include "ops/topk.h"
#include "text/batch.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kAlternatives = 5;  // the number of most probable words per step

std::string as_bytes(std::span<const float> weights) {
  std::string bytes;
  for (const float w : weights)
    bytes +=
        static_cast<char>(static_cast<unsigned char>(std::lround(std::clamp(w, 0.f, 1.f) * 255)));
  return base64(bytes);
}

Json side(const Vocabulary& vocabulary, std::span<const int32_t> ids, const std::string& text) {
  return {{"text", text},
          {"tokens", vocabulary.pieces(ids)},
          {"words", vocabulary.words(ids, text)},
          {"word_of", vocabulary.words_of(ids)}};
}

// Returns the sum of the weights of each row before rounding to bytes. It is 0 for a muted head and
// less than 1 for local-p.
Json row_sums(const AttentionMap& map) {
  Json sums = Json::array();
  for (int64_t i = 0; i < map.rows; ++i) {
    const auto row = map.weights.begin() + i * map.cols;
    sums.push_back(std::round(std::accumulate(row, row + map.cols, 0.0) * 1e4) / 1e4);
  }
  return sums;
}

Json as_json(const AttentionMap& map) {
  return {{"kind", map.kind},
          {"mechanism", map.mechanism.empty() ? "multi-head" : map.mechanism},
          {"layer", map.layer},
          {"head", map.head},
          {"rows", map.rows},
          {"cols", map.cols},
          {"data", as_bytes(map.weights)},
          {"sums", row_sums(map)}};
}

Json floats(std::span<const float> values) {
  Json list = Json::array();
  for (const float v : values) list.push_back(rounded(v));
  return list;
}

const char* name_of(NamedSeries::Kind kind) {
  switch (kind) {
    case NamedSeries::Kind::position:
      return "position";
    case NamedSeries::Kind::half_width:
      return "half_width";
    case NamedSeries::Kind::deviation:
      return "deviation";
    case NamedSeries::Kind::centres:
      return "centres";
    case NamedSeries::Kind::distribution:
      return "distribution";
    case NamedSeries::Kind::frontier:
      break;
  }
  return "frontier";
}

Json values_of(const NamedSeries& series) {
  switch (series.kind) {
    case NamedSeries::Kind::distribution:
      return as_bytes(series.values);
    case NamedSeries::Kind::half_width:
      return std::lround(series.values.front());
    case NamedSeries::Kind::deviation:
      return rounded(series.values.front());
    case NamedSeries::Kind::frontier:
      return std::vector<int64_t>(series.values.begin(), series.values.end());
    case NamedSeries::Kind::position:
    case NamedSeries::Kind::centres:
      break;
  }
  return floats(series.values);
}

// Returns the name of the score function of the attention, or "" if it has none.
std::string score_of(const ModelConfig& config) {
  const auto* own = config.as<RecurrentConfig>();
  return own && own->attention.has_score() ? own->attention.score_name() : "";
}

// Returns the values of the series of a mechanism, by name.
Json extra(std::span<const AttentionMap> maps) {
  Json found = Json::object();
  for (const AttentionMap& map : maps)
    for (const NamedSeries& series : map.series) found[series.name] = values_of(series);
  return found;
}

// Returns a description of the mechanism, and how to draw its series.
Json mechanism_json(const ModelConfig& config, std::span<const AttentionMap> maps) {
  const auto* own = config.as<RecurrentConfig>();
  const AttentionMechanism* mechanism = own ? find_mechanism(own->attention.kind) : nullptr;
  const AttentionInfo& about = mechanism ? mechanism->about : multi_head_attention();
  std::string note = about.note;
  for (const AttentionInfo& score : attention_scores())
    if (score_of(config) == score.name && own->attention.kind == "global" && *score.note)
      note = score.note;
  Json series = Json::array();
  for (const AttentionMap& map : maps.first(std::min<size_t>(maps.size(), 1)))
    for (const NamedSeries& each : map.series)
      series.push_back({{"name", each.name}, {"label", each.label}, {"kind", name_of(each.kind)}});
  return {{"name", about.name},   {"title", about.title}, {"text", about.text},
          {"paper", about.paper}, {"note", note},         {"series", std::move(series)}};
}

Json about(const ModelConfig& config, std::span<const AttentionMap> maps) {
  std::set<std::string> kinds;
  int64_t heads = 0;
  for (const AttentionMap& map : maps) {
    kinds.insert(map.kind);
    heads = std::max(heads, map.head + 1);
  }
  return {{"type", config.type()},
          {"layers", {{"encoder", config.encoder_layers}, {"decoder", config.decoder_layers}}},
          {"heads", heads},
          {"kinds", kinds}};
}

// Returns the most probable words of each step, by forced decoding of the translation.
Json steps(const ServedModel& model, const Translation& translation, const Alternative& best) {
  const ModelBundle& package = model.package();
  const Decodable& network = decodable(translation.altered ? *translation.altered : *package.model);
  const SentenceFrame& frame = package.model->frame();
  PackedSentences source, context;
  const std::span<const int32_t> ids = translation.source_ids;
  source.add_source(ids.first(ids.size() - 1), frame);
  context.add_target_in({}, frame);
  const auto state = network.start({source.ids, source.offsets});
  for (size_t i = 0; i + 1 < context.ids.size(); ++i)
    network.step(*state, std::span(&context.ids[i], 1));
  Json list = Json::array();
  int32_t word = frame.before_first();
  for (size_t i = 0; i < best.ids.size(); ++i) {
    const TopK top = on_host(top_k(network.step(*state, std::span(&word, 1)), kAlternatives));
    const std::vector<double> values = top.values.values(), sum = top.log_sum.values();
    const auto columns = top.columns.in<int32_t>();
    Json probable = Json::array();
    for (size_t k = 0; k < values.size(); ++k)
      if (const int32_t id = columns.data[k]; id >= 0)
        probable.push_back(
            Json::array({package.target.name(id), rounded(std::exp(values[k] - sum[0]))}));
    list.push_back({{"token", best.pieces[i]},
                    {"logprob", rounded(best.log_probs[i])},
                    {"topk", std::move(probable)}});
    word = best.ids[i];
  }
  return list;
}

// Returns the search tree: each hypothesis that a step kept. Finished hypotheses have their rank.
Json tree(const Vocabulary& target, const Translation& translation) {
  const std::vector<BeamNode>& nodes = translation.tree;
  std::vector<double> scores(nodes.size(), 0);
  std::vector<int64_t> steps(nodes.size(), 0);
  Json list = Json::array();
  for (size_t i = 1; i < nodes.size(); ++i) {
    const auto parent = static_cast<size_t>(nodes[i].parent);
    scores[i] = scores[parent] + nodes[i].log_prob;
    steps[i] = steps[parent] + 1;
    Json node{{"id", i},
              {"parent", parent},
              {"step", steps[i]},
              {"token", target.name(nodes[i].word)},
              {"score", rounded(scores[i])},
              {"finished", nodes[i].word == kEos}};
    if (nodes[i].word == kEos) {
      std::vector<int32_t> words;
      for (size_t n = i; n > 0; n = static_cast<size_t>(nodes[n].parent))
        words.insert(words.begin(), nodes[n].word);
      const auto& best = translation.n_best;
      const auto found = std::ranges::find(best, words, &Alternative::ids);
      if (found != best.end()) node["rank"] = found - best.begin();
    }
    list.push_back(std::move(node));
  }
  return list;
}

}  // namespace

double rounded(double value) { return std::round(value * 1e6) / 1e6; }

Json model_json(const ServedModel& model) {
  const ModelConfig& config = model.config();
  const auto* own = config.as<RecurrentConfig>();
  return {{"name", model.name()},
          {"source", model.source()},
          {"target", model.target()},
          {"type", config.type()},
          {"attention", own ? own->attention.kind : "multi-head"},
          {"score", score_of(config)},
          {"gallery", model.of_gallery()},
          {"training", model.training() != nullptr}};
}

size_t bytes_of_maps(std::span<const AttentionMap> maps) {
  size_t bytes = 0;
  for (const AttentionMap& map : maps) {
    const NamedSeries* choice = map.find(NamedSeries::Kind::distribution);
    bytes += (map.weights.size() + (choice ? choice->values.size() : 0) + 2) / 3 * 4;
    bytes += 7 * static_cast<size_t>(map.rows);  // the sum of each row: "0.9999,"
  }
  return bytes;
}

std::string attention_too_large() {
  return fmt::format(
      "Invalid request: the attention of this text takes more than {} MiB; send fewer or shorter "
      "sentences",
      kMaxAttentionBytes >> 20);
}

Json attention_json(const ServedModel& model, const std::string& sentence,
                    const Translation& translation) {
  const ModelBundle& package = model.package();
  const Alternative* best = translation.n_best.empty() ? nullptr : &translation.n_best.front();
  Json maps = Json::array();
  for (const AttentionMap& map : translation.attention) maps.push_back(as_json(map));
  return {{"model", about(package.config, translation.attention)},
          {"source", side(package.source, translation.source_ids, sentence)},
          {"target", side(package.target,
                          best ? std::span<const int32_t>(best->ids) : std::span<const int32_t>{},
                          translation.text)},
          {"attention", std::move(maps)},
          {"extra", extra(translation.attention)},
          {"mechanism", mechanism_json(package.config, translation.attention)},
          {"steps", best ? steps(model, translation, *best) : Json::array()},
          {"beam", tree(package.target, translation)}};
}

}  // namespace fovea

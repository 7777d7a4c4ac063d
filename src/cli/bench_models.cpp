#include "cli/bench_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/random.h"
#include "nn/recurrent_layers.h"

namespace fovea {
namespace {

struct TransformerShape {
  int64_t words, size, inner, heads, layers;
  double dropout;

  ModelConfig config() const {
    ModelConfig c;
    c.network = TransformerConfig{.heads = heads, .inner = inner, .activation_dropout = dropout};
    c.source_words = c.target_words = words;
    c.encoder_layers = c.decoder_layers = layers;
    c.size = size, c.dropout = dropout;
    return c;
  }
};

struct RecurrentShape {
  Cell cell;
  DecoderForm decoder;
  const char* score;
  int64_t words, embedding, size, readout, layers;
  EncoderDirections reading;
  double dropout;

  ModelConfig config() const {
    ModelConfig c;
    auto& own = c.network.emplace<RecurrentConfig>();
    own.cell = cell, own.decoder = decoder, own.attention.score = score;
    own.embedding = embedding, own.readout = readout;
    own.bidirectional = reading == EncoderDirections::both_ways;
    c.source_words = c.target_words = words;
    c.encoder_layers = c.decoder_layers = layers;
    c.size = size, c.dropout = dropout, c.tied = TiedEmbeddings::none;
    return c;
  }
};

WordWork work_of(const ModelShape& m, const TransformerConfig& c, double length) {
  const double D = static_cast<double>(m.size), F = static_cast<double>(c.inner);
  const double A = static_cast<double>(c.attention_size(m)), inner = (c.gated ? 3 : 2) * D * F;
  const double encoder = 4 * D * A + inner + 2 * length * A, keys = 2 * D * A;
  const double decoder = 6 * D * A + inner + 3 * length * A;
  const double layers = static_cast<double>(m.decoder_layers);
  return {static_cast<double>(m.encoder_layers) * encoder + layers * keys,
          layers * decoder + D * static_cast<double>(m.target_words)};
}

WordWork work_of(const ModelShape& m, const RecurrentConfig& c, double length) {
  const bool bahdanau = c.decoder == DecoderForm::bahdanau,
             additive = c.attention.score == "additive";
  const double n = static_cast<double>(m.size), E = static_cast<double>(c.embedding_size(m));
  const double D = static_cast<double>(c.annotation_size(m)), ways = c.bidirectional ? 2 : 1;
  const double G = static_cast<double>(gates(c.cell)), R = static_cast<double>(c.readout_size(m));
  const double above_encoder = static_cast<double>(m.encoder_layers - 1),
               above_decoder = static_cast<double>(m.decoder_layers - 1);
  const double encoder = G * D * (E + D / ways) + above_encoder * G * D * (D + D / ways);
  const double keys = n * D;
  const double decoder = G * n * (E + n + (bahdanau ? D : R)) + above_decoder * G * n * 2 * n;
  const double attention = (additive ? n * n : 0) + length * (n + D);
  const double readout = R * (n + D + (bahdanau ? E : 0));
  return {encoder + keys, decoder + attention + readout + R * static_cast<double>(m.target_words)};
}

}  // namespace

// rnnsearch: Bahdanau et al. 2015 with the GRU of PyTorch. luong: Luong et al. 2015 with the
// default sizes of OpenNMT.
const std::map<std::string, BenchModel>& bench_models() {
  using enum EncoderDirections;
  static const RecurrentShape rnnsearch{
      Cell::gru_after, DecoderForm::bahdanau, "additive", 30000, 620, 1000, 620, 1, both_ways, 0};
  static const RecurrentShape luong{
      Cell::lstm, DecoderForm::luong, "general", 30000, 500, 500, 500, 2, forward, 0.3};
  static const std::map<std::string, BenchModel> known = {
      {"tiny", {TransformerShape{10000, 128, 256, 4, 4, 0.3}.config(), 256, 16}},
      {"small", {TransformerShape{8000, 256, 1024, 4, 3, 0.1}.config(), 256, 20}},
      {"iwslt", {TransformerShape{10000, 512, 1024, 4, 6, 0.3}.config(), 64, 32}},
      {"base", {TransformerShape{32000, 512, 2048, 8, 6, 0.1}.config(), 32, 32}},
      {"rnnsearch", {rnnsearch.config(), 80, 32}},
      {"luong", {luong.config(), 64, 32}},
  };
  return known;
}

std::vector<int32_t> random_words(Random& random, const ModelConfig& config, int64_t count) {
  std::vector<int32_t> words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(4 + static_cast<int32_t>(random.below(config.source_words - 4)));
  return words;
}

std::vector<PairBatch> random_batches(const BenchModel& model, int64_t count) {
  Random random(1);
  const auto least = static_cast<int64_t>(0.7 * static_cast<double>(model.length));
  std::vector<PairBatch> batches(static_cast<size_t>(count));
  for (PairBatch& b : batches)
    for (int64_t i = 0; i < model.batch; ++i) {
      const int64_t n = least + static_cast<int64_t>(random.below(model.length - least + 1)) - 1;
      const std::vector<int32_t> words = random_words(random, model.config, n);
      b.source.add(words, PackedSentences::Mark::eos_after);
      b.target_in.add(words, PackedSentences::Mark::bos_before);
      b.target_out.add(words, PackedSentences::Mark::eos_after);
      b.target_tokens += n + 1;
    }
  return batches;
}

WordWork work_per_word(const ModelConfig& c, double length) {
  if (const auto* own = c.as<RecurrentConfig>()) return work_of(c, *own, length);
  return work_of(c, *c.as<TransformerConfig>(), length);
}

std::string label_of_key(std::string key) {
  if (key.ends_with("_bytes")) key.resize(key.size() - std::string("_bytes").size());
  std::ranges::replace(key, '_', ' ');
  return key;
}

std::string readable_value(const std::string& key, const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array())
    return readable_value(key, value.front()) + " to " + readable_value(key, value.back());
  if (key.ends_with("_bytes")) return fmt::format("{:.0f} MiB", value.get<double>() / 0x1p20);
  if (key.starts_with("share")) return fmt::format("{:.0f} %", 100 * value.get<double>());
  if (value.is_number_integer()) return with_commas(value.get<int64_t>());
  const double number = value.get<double>();
  if (number < 100) return fmt::format("{:.3g}", number);
  const double unit = std::pow(10, std::floor(std::log10(number)) - 2);
  return with_commas(std::llround(std::round(number / unit) * unit));
}

}  // namespace fovea

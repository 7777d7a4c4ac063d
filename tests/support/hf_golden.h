#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "importer/bart_family.h"
#include "importer/hf_checkpoint.h"
#include "importer/import_model.h"
#include "importer/t5_family.h"
#include "models/model_directory.h"
#include "models/transformer.h"
#include "temporary.h"

// A tiny checkpoint of Hugging Face with the results of Transformers (tests/golden/hf). The piece
// of id 7 is "w7".
namespace fovea {

class HfGolden {
 public:
  // `unknown`: the id of <unk>, which config.json does not have.
  HfGolden(const std::string& name, int64_t unknown)
      : checkpoint_(HfCheckpoint::open(FOVEA_SOURCE "/tests/golden/hf/" + name)),
        golden_(nlohmann::json::parse(std::ifstream(checkpoint_.file("golden.json")))) {
    const ForeignSettings& config = checkpoint_.config;
    std::vector<std::string> names;
    for (int64_t i = 0; i < config.size("vocab_size"); ++i)
      names.push_back("w" + std::to_string(i));
    const auto at = [&](int64_t id) { return names[static_cast<size_t>(id)]; };
    const int64_t pad = config.integer("pad_token_id"), end = config.integer("eos_token_id");
    const int64_t start = config.integer("bos_token_id", -1);
    const bool has_start = start >= 0 && start != pad && start != end;
    pieces_ = ForeignPieces(
        names, {at(pad), has_start ? at(start) : "", at(end), unknown < 0 ? "" : at(unknown)}, {},
        name);
    import();
  }

  const nlohmann::json& golden() const { return golden_; }
  const ForeignPieces& pieces() const { return pieces_; }
  const HfCheckpoint& checkpoint() const { return checkpoint_; }
  const ModelConfig& config() const { return loaded_.config; }
  const Model& model() const { return *loaded_.model; }

  // The vocabulary of both sides, and the settings of a case of "generate".
  Vocabulary vocabulary() const {
    std::vector<Vocabulary::Entry> entries;
    for (size_t id = kSpecials; id < pieces_.order().pieces.size(); ++id)
      entries.push_back({pieces_.order().pieces[id].name, 1});
    return Vocabulary::from_entries(Segmentation::words, entries);
  }
  GenerationConfig generation(const nlohmann::json& arguments) const {
    HfCheckpoint checkpoint = checkpoint_;
    nlohmann::json settings = checkpoint_.config.json();
    settings.update(arguments);
    checkpoint.generation = ForeignSettings::parse(settings.dump(), "golden.json");
    return hf_generation(checkpoint, pieces_);
  }
  void set_frame(const SentenceFrame& frame) { loaded_.model->set_frame(frame); }

  // Fovea's ids of foreign ones. Sources are without padding.
  std::vector<int32_t> ids(const std::vector<int64_t>& foreign) const {
    std::vector<int32_t> result;
    for (const int64_t id : foreign) result.push_back(pieces_.id(id, "golden"));
    return result;
  }
  std::vector<int32_t> source(size_t sentence) const {
    const auto mask = golden_["attention_mask"][sentence].get<std::vector<int>>();
    std::vector<int32_t> kept = ids(golden_["input_ids"][sentence].get<std::vector<int64_t>>());
    kept.resize(static_cast<size_t>(std::ranges::count(mask, 1)));
    return kept;
  }
  size_t sentences() const { return golden_["input_ids"].size(); }

  // Calls `act` for each sentence with its source and the input of its decoder.
  using Act = std::function<void(size_t sentence, const TokenBatch& source, const TokenBatch& in)>;
  void each_sentence(const Act& act) const {
    for (size_t i = 0; i < sentences(); ++i) {
      const std::vector<int32_t> from = source(i);
      const auto to = ids(golden_["decoder_input_ids"][i].get<std::vector<int64_t>>());
      const std::vector<int32_t> from_ends{0, static_cast<int32_t>(from.size())},
          to_ends{0, static_cast<int32_t>(to.size())};
      act(i, {from, from_ends}, {to, to_ends});
    }
  }

  // The largest difference of the encoder outputs and of the logits.
  double worst_encoder_output() const {
    double worst = 0;
    each_sentence([&](size_t i, const TokenBatch& source, const TokenBatch&) {
      const auto& net = *model().as<Transformer>();
      const SentenceOffsets from = SentenceOffsets::of(source.offsets, Cpu{});
      const auto values = net.encode(net.embed_source(source.ids, from), from).values();
      const auto& rows = golden_["encoder_last_hidden_state"][i];
      for (size_t n = 0; n < values.size(); ++n)
        worst = std::max(worst, std::abs(values[n] - number(rows, n, config().size)));
    });
    return worst;
  }
  double worst_logit() const {
    double worst = 0;
    each_sentence([&](size_t i, const TokenBatch& source, const TokenBatch& in) {
      const auto values = logits(source, in);
      const int64_t V = pieces_.size(), rows = std::ssize(in.ids);
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t id = 0; id < V; ++id) {
          const int32_t foreign = pieces_.order().rows[static_cast<size_t>(id)];
          const double found = values[static_cast<size_t>(row * V + id)];
          if (foreign < 0) {
            EXPECT_LT(found, -1e8) << id;
            continue;
          }
          const double wanted = golden_["logits"][i][row][static_cast<size_t>(foreign)];
          worst = std::max(worst, std::abs(found - wanted));
        }
    });
    return worst;
  }
  // The largest difference of the attention weights of a layer from golden[key], which is
  // [sentences, heads, rows, columns].
  double worst_attention(const std::string& key, const std::string& kind, int64_t layer) const {
    double worst = 0;
    each_sentence([&](size_t i, const TokenBatch& source, const TokenBatch& in) {
      const auto maps = model().as<Attentive>()->attention(source, in);
      for (const AttentionMap& map : maps.front()) {
        if (map.kind != kind || map.layer != layer) continue;
        for (size_t n = 0; n < map.weights.size(); ++n) {
          const auto& head = golden_[key][i][static_cast<size_t>(map.head)];
          worst = std::max(worst, std::abs(map.weights[n] - number(head, n, map.cols)));
        }
      }
    });
    return worst;
  }

 private:
  static double number(const nlohmann::json& rows, size_t n, int64_t columns) {
    return rows[n / static_cast<size_t>(columns)][n % static_cast<size_t>(columns)];
  }

  std::vector<double> logits(const TokenBatch& source, const TokenBatch& in) const {
    const auto& net = *model().as<Transformer>();
    const SentenceOffsets from = SentenceOffsets::of(source.offsets, Cpu{}),
                          to = SentenceOffsets::of(in.offsets, Cpu{});
    const Tensor memory = net.encode(net.embed_source(source.ids, from), from);
    return net.logits(net.decode(net.embed_target(in.ids, to), to, memory, from)).values();
  }

  void import() {
    const bool bart = is_bart_family(checkpoint_.model_type());
    ModelConfig config = bart ? bart_family_config(checkpoint_.config, pieces_, pieces_)
                              : t5_config(checkpoint_.config, pieces_);
    check_imported(config, checkpoint_.file("config.json"));
    const auto archive = checkpoint_.open_weights();
    ImportedWeights to(config, archive->path());
    WeightMapping weights(*archive, to);
    if (bart)
      map_bart_family(weights, config, checkpoint_.config, pieces_, pieces_);
    else
      map_t5(weights, config, pieces_);
    to.write(folder_ / "model.safetensors", StoredType::F32);
    save_config(folder_.path(), config);
    loaded_ = load_model(folder_.path(), ElementType::f64);
  }

  TemporaryFolder folder_;
  HfCheckpoint checkpoint_;
  nlohmann::json golden_;
  ForeignPieces pieces_;
  LoadedModel loaded_;
};

}  // namespace fovea

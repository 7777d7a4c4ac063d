#include "importer/hf_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/check.h"

namespace fovea {

HfCheckpoint HfCheckpoint::open(const std::string& directory) {
  HfCheckpoint checkpoint{directory, {}, {}, {}};
  checkpoint.config = ForeignSettings::load(checkpoint.file("config.json"));
  checkpoint.generation = checkpoint.has("generation_config.json")
                              ? ForeignSettings::load(checkpoint.file("generation_config.json"))
                              : checkpoint.config;
  checkpoint.tokenizer = ForeignSettings::load_if_exists(checkpoint.file("tokenizer_config.json"));
  return checkpoint;
}

bool HfCheckpoint::has(const std::string& name) const {
  std::error_code error;
  return std::filesystem::is_regular_file(file(name), error);
}

std::string HfCheckpoint::first_file(const std::vector<std::string>& names) const {
  for (const std::string& name : names)
    if (has(name)) return file(name);
  fail(ExitCode::model, directory, ": found none of ", fmt::format("{}", fmt::join(names, ", ")),
       ", expected one of them; download all files of the model");
}

std::unique_ptr<TensorArchive> HfCheckpoint::open_weights() const {
  return open_tensor_archive(first_file({"model.safetensors", "model.safetensors.index.json",
                                         "pytorch_model.bin", "pytorch_model.bin.index.json"}));
}

namespace {

void reject_unsupported(const ForeignSettings& file) {
  for (const auto& [key, value] : {std::pair("repetition_penalty", 1.0),
                                   {"encoder_repetition_penalty", 1.0},
                                   {"diversity_penalty", 0.0},
                                   {"num_beam_groups", 1.0},
                                   {"penalty_alpha", 0.0},
                                   {"encoder_no_repeat_ngram_size", 0.0},
                                   {"min_new_tokens", 0.0}})
    file.require_number(key, value);
  file.require_flag("do_sample", false);
  for (const char* key : {"begin_suppress_tokens", "forced_decoder_ids", "force_words_ids",
                          "constraints", "exponential_decay_length_penalty", "sequence_bias"})
    file.require_empty(key);
}

EarlyStopping early_stopping_of(const ForeignSettings& file) {
  if (!file.has("early_stopping")) return EarlyStopping::no;
  const nlohmann::json& value = file.json()["early_stopping"];
  if (value == "never") return EarlyStopping::never;
  return file.flag("early_stopping", false) ? EarlyStopping::yes : EarlyStopping::no;
}

// The pieces of bad_words_ids, a list of sequences, and of suppress_tokens.
std::vector<std::string> suppressed_pieces(const ForeignSettings& file,
                                           const ForeignPieces& target) {
  std::vector<std::string> pieces;
  if (file.has("bad_words_ids")) {
    const nlohmann::json& sequences = file.json()["bad_words_ids"];
    for (const nlohmann::json& sequence : sequences) {
      if (!sequence.is_array() || sequence.size() != 1 || !sequence[0].is_number_integer())
        file.reject("bad_words_ids",
                    "expected sequences of one id; longer ones are not supported, "
                    "remove them to import the model without them");
      pieces.push_back(target.name(sequence[0].get<int64_t>(), file.path() + ": bad_words_ids"));
    }
  }
  for (const int64_t id : file.integers("suppress_tokens"))
    pieces.push_back(target.name(id, file.path() + ": suppress_tokens"));
  return pieces;
}

// forced_eos_token_id, which is </s> or not set.
bool has_forced_end(const ForeignSettings& file, int64_t end) {
  const std::vector<int64_t> forced = file.integers("forced_eos_token_id");
  if (forced.empty()) return false;
  if (forced != std::vector{end})
    file.reject("forced_eos_token_id", "expected the value of eos_token_id");
  return true;
}

}  // namespace

GenerationConfig hf_generation(const HfCheckpoint& checkpoint, const ForeignPieces& target) {
  const ForeignSettings &file = checkpoint.generation, &config = checkpoint.config;
  reject_unsupported(file);
  const auto where = [&](const char* key) { return file.path() + ": " + key; };
  const int64_t end = config.integer("eos_token_id");
  if (const auto ends = file.integers("eos_token_id"); !ends.empty() && ends != std::vector{end})
    file.reject("eos_token_id", "expected the one of config.json; several are not supported");

  GenerationConfig g;
  const int64_t start =
      file.integer("decoder_start_token_id", config.integer("decoder_start_token_id", -1));
  g.start = target.name(start >= 0 ? start : file.integer("bos_token_id"),
                        where("decoder_start_token_id"));
  g.beam_rule = BeamRule::transformers;
  g.beam = file.integer("num_beams", 1);
  g.length_penalty = file.number("length_penalty", 1);
  g.early_stopping = early_stopping_of(file);
  g.min_length = file.integer("min_length", 0);
  const int64_t longest = file.integer("max_length", 0);  // includes the start piece
  g.max_length = file.integer("max_new_tokens", longest > 0 ? longest - 1 : 0);
  g.forced_end = has_forced_end(file, end);
  g.no_repeat_ngram = file.integer("no_repeat_ngram_size", 0);
  g.suppress = suppressed_pieces(file, target);
  g.renormalize = file.flag("renormalize_logits", false);
  for (const int64_t id : file.integers("forced_bos_token_id"))
    g.target_prefix.push_back(target.name(id, where("forced_bos_token_id")));
  return g;
}

}  // namespace fovea

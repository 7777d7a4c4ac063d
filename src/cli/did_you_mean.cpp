#include "cli/did_you_mean.h"

#include <algorithm>
#include <utility>

#include "base/edit_distance.h"

namespace fovea {
namespace {

// Pairs of a name in another toolkit and the name in Fovea. A name of a toolkit may occur several
// times: the first pair whose second name exists in the command is used.
constexpr std::pair<const char*, const char*> kOtherToolkits[] = {
    // commands
    {"generate", "translate"},
    {"interactive", "translate"},
    {"decode", "translate"},
    {"preprocess", "vocab"},
    {"sacrebleu", "evaluate"},
    {"info", "inspect"},
    // text
    {"--src", "--source"},
    {"--src", "--input"},
    {"--src", "--set data.train_source=FILE"},
    {"--tgt", "--target"},
    {"--tgt", "--set data.train_target=FILE"},
    {"--hyp", "--input"},
    {"--ref", "--reference"},
    {"--save-dir", "--output"},
    {"--output-dir", "--output"},
    // search
    {"--beam-size", "--beam"},
    {"--num-beams", "--beam"},
    {"--nbest", "--n-best"},
    {"--lenpen", "--length-penalty"},
    {"--max-tokens", "--batch-tokens"},
    {"--max-tokens", "--set batch.tokens=N"},
    {"--batch-size", "--batch-tokens"},
    {"--batch-size", "--set batch.tokens=N"},
    // device, precision, vocabularies
    {"--gpu", "--device"},
    {"--cuda", "--device"},
    {"--fp16", "--precision"},
    {"--vocab-size", "--size"},
    {"--vocab-size", "--set vocabulary.size=N"},
    // training
    {"--lr", "--set schedule.lr=N"},
    {"--warmup-updates", "--set schedule.warmup=N"},
    {"--max-epoch", "--set train.epochs=N"},
    {"--max-update", "--set train.updates=N"},
    {"--dropout", "--set model.dropout=N"},
    {"--label-smoothing", "--set train.label_smoothing=N"},
    {"--patience", "--set valid.patience=N"},
    {"--seed", "--set train.seed=N"},
    {"--arch", "--set model.type=KIND"},
};

// Whether the option of a suggestion is among the names. Of "--set train.seed=N" the option is
// --set.
bool contains(const std::vector<std::string>& names, const std::string& ours) {
  return std::ranges::count(names, ours.substr(0, ours.find(' '))) > 0;
}

}  // namespace

std::string suggested_name(const std::string& typed, const std::vector<std::string>& names) {
  std::string spelled = typed;  // fairseq and SentencePiece write --beam_size
  std::ranges::replace(spelled, '_', '-');
  for (const auto& [theirs, ours] : kOtherToolkits)
    if (spelled == theirs && contains(names, ours)) return ours;
  return nearest_name(typed, names);
}

}  // namespace fovea

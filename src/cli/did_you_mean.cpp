#include "cli/did_you_mean.h"

#include <algorithm>
#include <utility>

#include "base/edit_distance.h"

namespace fovea {
namespace {

// Pairs of a name in another toolkit and the name in Fovea. A name may occur several times: the
// first pair whose second name exists in the command is used.
constexpr std::pair<const char*, const char*> kOtherToolkits[] = {
    // commands: fairseq, Marian, Sockeye, OpenNMT, sacreBLEU
    {"generate", "translate"},
    {"interactive", "translate"},
    {"decode", "translate"},
    {"predict", "translate"},
    {"visualize", "show"},
    {"plot", "show"},
    {"draw", "show"},
    {"preprocess", "vocab"},
    {"prepare", "vocab"},
    {"tokenize", "vocab"},
    {"bleu", "evaluate"},
    {"sacrebleu", "evaluate"},
    {"scorer", "score"},
    {"server", "serve"},
    {"info", "inspect"},
    {"fit", "train"},
    // text
    {"--src", "--source"},
    {"--src", "--input"},
    {"--src", "--set data.train_source=FILE"},
    {"--source", "--input"},
    {"--source", "--set data.train_source=FILE"},
    {"--tgt", "--target"},
    {"--tgt", "--set data.train_target=FILE"},
    {"--trg", "--target"},
    {"--trg", "--set data.train_target=FILE"},
    {"--target", "--set data.train_target=FILE"},
    {"--hyp", "--input"},
    {"--hyps", "--input"},
    {"--hypothesis", "--input"},
    {"--hypotheses", "--input"},
    {"--sys", "--input"},
    {"--ref", "--reference"},
    {"--refs", "--reference"},
    {"--references", "--reference"},
    {"--train-sets", "--set data.train_source=FILE"},
    {"--valid-sets", "--set data.valid_source=FILE"},
    {"--save-dir", "--output"},
    {"--output-dir", "--output"},
    {"--out", "--output"},
    {"--model-prefix", "--output"},
    // search
    {"--beam-size", "--beam"},
    {"--num-beams", "--beam"},
    {"--nbest", "--n-best"},
    {"--lenpen", "--length-penalty"},
    {"--normalize", "--length-penalty"},
    {"--alpha", "--length-penalty"},
    {"--max-len", "--max-length"},
    {"--sampling", "--sample"},
    {"--sampling-topk", "--top-k"},
    {"--sampling-topp", "--top-p"},
    {"--print-alignment", "--alignment"},
    {"--word-scores", "--per-token"},
    {"--max-tokens", "--batch-tokens"},
    {"--max-tokens", "--set batch.tokens=N"},
    {"--batch-size", "--batch-tokens"},
    {"--batch-size", "--set batch.tokens=N"},
    {"--mini-batch", "--batch-tokens"},
    {"--mini-batch", "--set batch.tokens=N"},
    // device, threads, precision
    {"--gpu", "--device"},
    {"--gpus", "--device"},
    {"--cuda", "--device"},
    {"--devices", "--device"},
    {"--cpu-threads", "--threads"},
    {"--num-threads", "--threads"},
    {"--fp16", "--precision"},
    {"--bf16", "--precision"},
    {"--int8", "--precision"},
    // vocabularies
    {"--vocab-size", "--size"},
    {"--vocab-size", "--set vocabulary.size=N"},
    {"--model-type", "--kind"},
    {"--model-type", "--set model.type=KIND"},
    // training
    {"--lr", "--set schedule.lr=N"},
    {"--learning-rate", "--set schedule.lr=N"},
    {"--learn-rate", "--set schedule.lr=N"},
    {"--lr-scheduler", "--set schedule.kind=KIND"},
    {"--warmup", "--set schedule.warmup=N"},
    {"--warmup-updates", "--set schedule.warmup=N"},
    {"--lr-warmup", "--set schedule.warmup=N"},
    {"--epochs", "--set train.epochs=N"},
    {"--max-epoch", "--set train.epochs=N"},
    {"--after-epochs", "--set train.epochs=N"},
    {"--updates", "--set train.updates=N"},
    {"--max-update", "--set train.updates=N"},
    {"--train-steps", "--set train.updates=N"},
    {"--dropout", "--set model.dropout=N"},
    {"--label-smoothing", "--set train.label_smoothing=N"},
    {"--update-freq", "--set train.accumulate=N"},
    {"--clip-norm", "--set optimizer.clip=N"},
    {"--weight-decay", "--set optimizer.weight_decay=N"},
    {"--patience", "--set valid.patience=N"},
    {"--early-stopping", "--set valid.patience=N"},
    {"--valid-freq", "--set valid.every=N"},
    {"--save-freq", "--set checkpoint.every=N"},
    {"--disp-freq", "--set train.log_every=N"},
    {"--seed", "--set train.seed=N"},
    {"--arch", "--set model.type=KIND"},
    {"--type", "--set model.type=KIND"},
    {"--resume", "--output"},
    {"--no-reload", "--restart"},
};

// Whether an option is among the names: --set for "--set train.seed=N".
bool contains(const std::vector<std::string>& names, const std::string& ours) {
  return std::ranges::count(names, ours.substr(0, ours.find(' '))) > 0;
}

}  // namespace

std::string suggested_name(const std::string& typed, const std::vector<std::string>& names) {
  std::string spelled = typed;  // fairseq and SentencePiece write --beam_size
  std::ranges::replace(spelled, '_', '-');
  if (contains(names, spelled)) return spelled;
  for (const auto& [theirs, ours] : kOtherToolkits)
    if (spelled == theirs && contains(names, ours)) return ours;
  return nearest_name(typed, names);
}

}  // namespace fovea

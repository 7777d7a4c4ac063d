#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/atomic_output.h"
#include "base/log.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/line_pairs.h"
#include "cli/model_options.h"
#include "cli/translation_format.h"
#include "decode/scorer.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  The log-probability of each reference translation (natural logarithm, one line per pair):
    fovea score -m model -s test.en -t test.de

  The perplexity of the whole file:
    fovea score -m model -s test.en -t test.de --summary

  The log-probability of each piece:
    fovea score -m model -s test.en -t test.de --per-token

SOURCE and TARGET can also be given without -s and -t, in this order. Each pair of lines gives one
line of output, even if they are empty. Probabilities include the end symbol. Perplexity is
exp(-log-probability / pieces), so it depends on the vocabulary.)";

constexpr int64_t kChunk = 4096;

struct ScoreCommand {
  ModelChoice model;
  std::string source, target, output = "-", format = "text";
  bool summary = false, per_token = false;
  int64_t batch_tokens = 2048;
};

struct Totals {
  int64_t sentences = 0, tokens = 0;
  double log_prob = 0;
};

// Scores the pairs of two files in chunks and writes the results.
class PairScorer {
 public:
  PairScorer(const ScoreCommand& command, const std::vector<ModelBundle>& bundles)
      : command_(command), models_(models_of(bundles)), source_(bundles.front().source),
        target_(bundles.front().target), out_(command.output) {
    longest_ = std::numeric_limits<int64_t>::max();
    for (const Model* model : models_)
      longest_ = std::min(longest_, model->max_length() - model->frame().added_pieces());
  }

  void run() {
    LinePairs lines(command_.source, command_.target);
    while (lines.next()) {
      pairs_.add(encode(source_, lines.source.text, lines.sources.where()),
                 encode(target_, lines.target.text, lines.targets.where()), lines.source.number);
      if (pairs_.size() == kChunk) flush();
    }
    flush();
    check(!command_.summary || totals_.sentences > 0, ExitCode::data, command_.source,
          " is empty, so its perplexity is undefined; check the file name");
    if (command_.summary) out_.write(summary());
    out_.close();
  }

 private:
  std::vector<int32_t> encode(const Vocabulary& vocabulary, std::string_view text,
                              const std::string& where) {
    std::vector<int32_t> ids = vocabulary.encode(clean_line(text).text);
    if (std::ssize(ids) <= longest_) return ids;
    cut_.add("{}: {} pieces, the model accepts {}; only the beginning was scored", where,
             ids.size(), longest_);
    ids.resize(static_cast<size_t>(longest_));
    return ids;
  }

  void flush() {
    const std::vector<PairScore> scores = score_pairs(models_, pairs_, command_.batch_tokens);
    for (size_t i = 0; i < scores.size(); ++i) {
      ++totals_.sentences;
      totals_.tokens += std::ssize(scores[i].log_probs);
      totals_.log_prob += scores[i].log_prob;
      if (!command_.summary) out_.write(line(scores[i], pairs_[static_cast<int64_t>(i)]));
    }
    out_.flush();
    pairs_ = Corpus();
  }

  std::string line(const PairScore& score, const SentencePair& pair) const {
    std::vector<std::string> pieces = target_.pieces(pair.target);
    pieces.emplace_back("</s>");
    if (command_.format == "jsonl") {
      nlohmann::ordered_json object{{"id", pair.line - 1}, {"log_prob", rounded(score.log_prob)}};
      if (command_.per_token) {
        object["tokens"] = pieces;
        object["token_scores"] = rounded_list(score.log_probs);
      }
      return json_line(object);
    }
    std::string text = fmt::format("{:.6f}", score.log_prob);
    for (size_t t = 0; command_.per_token && t < pieces.size(); ++t)
      text += fmt::format("{}{} {:.4f}", t ? " " : "\t", pieces[t], score.log_probs[t]);
    return text + "\n";
  }

  std::string summary() const {
    const double mean = totals_.log_prob / static_cast<double>(totals_.tokens);
    if (command_.format == "jsonl")
      return json_line({{"perplexity", rounded(std::exp(-mean))},
                        {"log_prob", rounded(totals_.log_prob)},
                        {"tokens", totals_.tokens},
                        {"sentences", totals_.sentences}});
    return fmt::format("perplexity {:.4f}, log-probability {:.4f}, {} pieces, {} sentences\n",
                       std::exp(-mean), totals_.log_prob, with_commas(totals_.tokens),
                       with_commas(totals_.sentences));
  }

  const ScoreCommand& command_;
  std::vector<const Model*> models_;
  Vocabulary source_, target_;
  WholeFile out_;
  Corpus pairs_;
  Totals totals_;
  int64_t longest_ = 0;
  LineWarnings cut_{"truncated lines"};
};

void score(const ScoreCommand& c) {
  check_pair_files(c.source, c.target, c.output);
  const std::vector<ModelBundle> bundles = load_models(c.model);
  const PrecisionScope precision(c.model.matmul_precision());
  PairScorer(c, bundles).run();
}

}  // namespace

void add_score(Command& program) {
  Command command =
      program.command("score", "Compute the probability of given translations under a model");
  auto shared = std::make_shared<ScoreCommand>();
  ScoreCommand& c = *shared;
  auto [source, target] = add_pair_options(command, c.source, c.target);
  source.required();
  target.required();
  command.option("-o,--output", c.output, "File to write (.gz, - for stdout)").takes("FILE");
  command.option("-f,--format", c.format, "Output format").among({"text", "jsonl"}).with_default();
  command.flag("--summary", c.summary, "Write only the perplexity of the whole file");
  command.flag("--per-token", c.per_token, "Also write the log-probability of each piece");
  add_batch_option(command, c.batch_tokens);
  add_model_options(command, c.model, ModelCount::ensemble);
  command.footer(kExamples);
  command.runs([shared] { score(*shared); });
}

}  // namespace fovea

#include "decode/search.h"
#include "goldens/case.h"
#include "support/table_model.h"

namespace fovea::goldens {
namespace {

// Converts the file's words 0 = start, 1 = end, 2 … to Fovea's words 1, 2, 3 …; padding is
// impossible.
TableModel model_of(const Case& c) {
  const int64_t steps = c.shape("in.log_prob")[0], words = c.shape("in.log_prob")[1];
  const std::vector<double> table = c.values("in.log_prob");
  return {words + 1, steps,
          [=](const TableModel::Words&, const TableModel::Words& prefix) {
            const auto step = std::ssize(prefix) - 1;
            const auto row =
                table.begin() + (step * words + prefix.back() - 1) * static_cast<int64_t>(words);
            TableModel::Row scores{-1e9};
            scores.insert(scores.end(), row, row + words);
            return scores;
          },
          c.type()};
}

std::vector<Hypothesis> found(const TableModel& model, int64_t beam, double length_penalty) {
  const std::vector<int32_t> source{5, 2}, offsets{0, 2};
  const int64_t number = 0;
  SearchOptions options;
  options.beam = options.n_best = beam;
  options.length_penalty = length_penalty;
  options.max_length_factor = 100;
  options.allow_unknown = true;
  const Model* models[] = {&model};
  return search(models, {source, offsets}, std::span(&number, 1), options).front();
}

// The words of a hypothesis as in the file, padded with −1.
void add_tokens(std::vector<double>& tokens, const Hypothesis& h, int64_t steps) {
  for (int64_t t = 0; t < steps; ++t)
    tokens.push_back(t < std::ssize(h.words) ? h.words[static_cast<size_t>(t)] - 1 : -1);
}

void beam(Case& c) {
  c.expect("in.bos", std::vector<double>{0});
  c.expect("in.eos", std::vector<double>{1});
  const TableModel model = model_of(c);
  const int64_t steps = c.shape("in.log_prob")[0];
  for (size_t a = 0; a < c.values("in.alphas").size(); ++a) {
    const double alpha = c.values("in.alphas")[a];
    const std::string end = ".a" + std::to_string(a) + ".";
    for (const int64_t k : {1, 3, 5}) {
      std::vector<double> tokens, lengths, log_probs, scores;
      for (const Hypothesis& h : found(model, k, alpha)) {
        add_tokens(tokens, h, steps);
        lengths.push_back(static_cast<double>(h.words.size()));
        log_probs.push_back(h.log_prob);
        scores.push_back(h.score);
      }
      const std::string name = "out.k" + std::to_string(k) + end;
      c.expect(name + "tokens", tokens);
      c.expect(name + "length", lengths);
      c.expect(name + "log_prob", log_probs);
      c.expect(name + "score", scores);
    }
    // The best of all sentences, which a sufficiently wide beam finds.
    const Hypothesis best = found(model, 500, alpha).front();
    std::vector<double> tokens;
    add_tokens(tokens, best, steps);
    c.expect("out.exact" + end + "tokens", tokens);
    c.expect("out.exact" + end + "log_prob", std::vector<double>{best.log_prob});
  }
}

}  // namespace

void add_beam_cases(std::map<std::string, Run>& cases) {
  cases["beam_exact"] = cases["beam_garden_path"] = beam;
}

}  // namespace fovea::goldens

#include "cli/search_choice.h"

#include "base/log.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "decode/generation_defaults.h"
#include "text/corpus.h"

namespace fovea {

void SearchChoice::add_to(Command& command) {
  Command group = command.group("Search");
  group.option(
      "-b,--beam", beam,
      "Beam size: hypotheses kept at each step; 1: greedy search; default: of the model (4)");
  group.option("-n,--n-best", n_best, "Number of translations per line, best first").with_default();
  group.option("--length-penalty", length_penalty,
               "A: score = log-probability / length^A; default: of the model (0.6)");
  group
      .option("--coverage-penalty", coverage_penalty,
              "Weight of the penalty for source words without attention")
      .with_default();
  group.option("--max-length-factor", max_length_factor,
               "Maximum length: N pieces per source piece, plus 10; default: 2, or no limit if "
               "config.yml has a max_length");
  group.option("--max-length", max_length,
               "Maximum length in pieces; 0: the limit of the model; default: that of config.yml");
  group.option("--min-length", min_length,
               "Minimum length in pieces, with the end symbol; default: of the model (0)");
  group.option("--no-repeat-ngram", no_repeat_ngram,
               "Never repeat N pieces in the same order; 0: allowed; default: of the model (0)");
  group.option("--prefix", prefix, "Beginning of every translation").takes("TEXT");
  group
      .option("--glossary", glossary,
              "Lines of a term, a tab and its translation, which every translation of a line with "
              "the term has")
      .takes("FILE");
  group.flag("--allow-unk", allow_unknown, "Allow the unknown word (⁇) in translations");
  add_sampling(command.group("Sampling"));
}

void SearchChoice::add_sampling(Command group) {
  Option wanted =
      group.flag("--sample", sample, "Sample translations instead of searching for the best one");
  group
      .option(
          "--temperature", sampler.temperature,
          "Divide the logits by N; below 1 favours probable words, above 1 gives more diversity")
      .needs(wanted)
      .with_default();
  group.option("--top-k", sampler.top_k, "Sample from the N most probable words; 0: all")
      .needs(wanted)
      .with_default();
  group
      .option("--top-p", sampler.top_p,
              "Sample from the smallest set of most probable words with total probability N")
      .needs(wanted)
      .with_default();
  group.option("--seed", sampler.seed, "Random seed; the same seed gives the same translation")
      .needs(wanted)
      .with_default();
}

SearchOptions SearchChoice::apply_to(SearchOptions defaults) const {
  SearchOptions& s = defaults;
  s.n_best = n_best;
  s.coverage_penalty = coverage_penalty;
  s.allow_unknown = allow_unknown;
  s.beam = beam.value_or(s.beam);
  s.length_penalty = length_penalty.value_or(s.length_penalty);
  s.min_length = min_length.value_or(s.min_length);
  s.max_length = max_length.value_or(s.max_length);
  s.max_length_factor = max_length_factor.value_or(s.max_length_factor);
  s.no_repeat_ngram = no_repeat_ngram.value_or(s.no_repeat_ngram);
  if (sample) s.sampling = sampler;
  return s;
}

SearchOptions SearchChoice::options(const ModelBundle& bundle) const {
  SearchOptions options = apply_to(search_defaults(bundle.config.generation, bundle.target));
  options.prefix = bundle.target.encode(clean_line(prefix).text);
  return options;
}

std::optional<Glossary> SearchChoice::read_glossary(const Vocabulary& vocabulary) const {
  if (glossary.empty()) return std::nullopt;
  check(!sample, ExitCode::usage,
        "--glossary: sampling cannot require terms; omit one of --sample ", "and --glossary");
  Glossary read = Glossary::read(glossary);
  for (const std::string& target : read.targets())
    if (term_pieces(vocabulary, target).empty())
      log_warning("{}: the model has no pieces for '{}'; this entry is ignored", glossary,
                  printable(target));
  return read;
}

}  // namespace fovea

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "eval/aer_report.h"
#include "eval/code_points.h"
#include "eval/evaluation_report.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  The BLEU of a translation, comparable to published figures (plain text, not tokenised):
    fovea evaluate -r test.de -i output.de

  Four metrics as JSON, with the translation from a pipe:
    fovea translate < test.en | fovea evaluate -r test.de -m bleu chrf chrf++ ter -f json

  Is a new system significantly better than the old one?
    fovea evaluate -r test.de -i old.de new.de -m bleu chrf --paired-bs

  The error rate of word alignments (Pharaoh: 0-0); gold links as Talp (1-1 sure, 1p2 possible):
    fovea evaluate --aer -r gold.talp -i forward.links joined.links

With several -r files, each line has several references. Scores, intervals and p-values equal those
of sacreBLEU 2.6.0, except that p is 1 if the scores are equal. Higher BLEU and chrF are better;
lower TER and AER are better.)";

constexpr size_t kLongestLine = size_t{1} << 28;
constexpr size_t kManyTokenized = 100;  // minimum number of lines that end in " ." for a warning

struct EvaluateCommand : EvaluationOptions {
  std::vector<std::string> references, inputs;
  std::string tokenize = "auto", smooth = "exp", format = "text", language_pair;
  double smooth_value = 0;
  bool lowercase = false, aer = false;
  int gold_from = 1;
};

NamedText read_text(const std::string& path) {
  LineReader reader = LineReader::once(path, kLongestLine);
  NamedText file{path == "-" ? "standard input" : path, {}};
  std::string first_bad;
  int64_t bad = 0;
  for (TextLine line; reader.next(line);) {
    check(!line.cut, ExitCode::data, reader.where(), ": the line is longer than ", kLongestLine,
          " bytes; is this a text file?");
    if (!is_utf8(line.text) && bad++ == 0) first_bad = reader.where();
    file.lines.push_back(utf8_of(without_trailing_blanks(characters_of(line.text))));
  }
  if (bad > 0)
    log_warning("{}: bytes that are not UTF-8 were replaced by U+FFFD (in {} lines of {})",
                first_bad, bad, file.name);
  return file;
}

void check_same_length(const NamedText& a, const NamedText& b) {
  size_t n = a.lines.size(), m = b.lines.size();
  if (n == m) return;
  const NamedText& longer = n > m ? a : b;
  fail(ExitCode::data, a.name, " has ", with_commas(static_cast<int64_t>(n)), " lines, ", b.name,
       " ", with_commas(static_cast<int64_t>(m)), "; first line without partner: ", longer.name,
       ":", std::min(n, m) + 1, "; hypothesis and reference must match line by line");
}

void warn_if_tokenized(const NamedText& system) {
  auto tokenized = static_cast<size_t>(
      std::count_if(system.lines.begin(), system.lines.end(),
                    [](const std::string& line) { return line.ends_with(" ."); }));
  if (tokenized >= kManyTokenized)
    log_warning(
        "{}: {} lines end in \" .\", so the text seems to be tokenised, which changes BLEU; "
        "detokenise "
        "it, or use --tokenize none if this is intended",
        system.name, tokenized);
}

void check_usage(const EvaluateCommand& options) {
  size_t systems = std::max<size_t>(1, options.inputs.size());
  bool paired = options.paired_bs || options.paired_ar;
  auto stdin_uses = std::count(options.references.begin(), options.references.end(), "-") +
                    std::count(options.inputs.begin(), options.inputs.end(), "-") +
                    (options.inputs.empty() ? 1 : 0);
  check(stdin_uses <= 1, ExitCode::usage,
        "standard input can be read only once; give file names for the other inputs");
  check(!paired || systems > 1, ExitCode::usage,
        "a paired test compares systems; give at least two -i files, the baseline first");
  check(!options.confidence || systems == 1, ExitCode::usage,
        "--confidence accepts one system; use --paired-bs for several");
  check(!options.sentence_level || systems == 1, ExitCode::usage,
        "--sentence-level accepts one system; give one -i file");
  check(!options.sentence_level || !(options.confidence || paired), ExitCode::usage,
        "--sentence-level cannot be combined with --confidence or a paired test");
}

void evaluate_alignments(const EvaluateCommand& options) {
  check(options.references.size() == 1, ExitCode::usage,
        "--aer accepts one reference; give one -r file of gold links");
  const bool tested = options.confidence || options.paired_bs || options.paired_ar;
  check(!options.sentence_level && !tested, ExitCode::usage,
        "--aer cannot be combined with --sentence-level, --confidence or a paired test");
  AerOptions aer{options.references.front(), options.inputs, options.gold_from, options.width};
  if (aer.inputs.empty()) aer.inputs.emplace_back("-");
  aer.score_only = options.score_only;
  aer.json = options.json;
  OutputFile out("-");
  out.write(evaluate_aer(aer));
  out.close();
}

// Returns the tokenizer. With --tokenize auto it is that of the target language, or of the script
// of the references.
BleuTokenizer choose_tokenizer(const EvaluateCommand& options, const NamedText& reference) {
  const std::string& pair = options.language_pair;
  const size_t dash = pair.find('-');
  check(pair.empty() || (dash > 0 && dash + 1 < pair.size()), ExitCode::usage, "--language-pair ",
        pair, ": expected two language codes with a hyphen, for example en-zh");
  if (options.bleu.tokenize != BleuTokenizer::automatic) return options.bleu.tokenize;
  const BleuTokenizer chosen = pair.empty()
                                   ? tokenizer_of_text(reference.lines)
                                   : tokenizer_of_language(std::string_view(pair).substr(dash + 1));
  if (chosen != BleuTokenizer::mteval13 && pair.empty())
    log_info("{}: most letters are from a script without blanks; BLEU uses --tokenize {}",
             reference.name, name_of(chosen));
  return chosen;
}

void evaluate(EvaluateCommand options) {
  check_usage(options);
  if (options.aer) return evaluate_alignments(options);
  std::vector<NamedText> references, systems;
  for (const std::string& path : options.references) references.push_back(read_text(path));
  for (const std::string& path : options.inputs) systems.push_back(read_text(path));
  if (options.inputs.empty()) {
    if (isatty(STDIN_FILENO))
      log_info("type one translation per line; Ctrl-D ends the input; use -i for files");
    systems.push_back(read_text("-"));
  }
  for (const NamedText& reference : references) check_same_length(references.front(), reference);
  for (const NamedText& system : systems) check_same_length(system, references.front());
  check(!references.front().lines.empty(), ExitCode::data, references.front().name,
        " is empty; there is nothing to evaluate");
  bool has_bleu = std::count(options.metrics.begin(), options.metrics.end(), "bleu") > 0;
  if (has_bleu) options.bleu.tokenize = choose_tokenizer(options, references.front());
  for (const NamedText& system : systems)
    if (has_bleu && options.bleu.tokenize != BleuTokenizer::none) warn_if_tokenized(system);

  std::vector<Lines> lines;
  for (NamedText& reference : references) lines.push_back(std::move(reference.lines));
  const std::string text = evaluation_report(options, systems, lines);
  OutputFile out("-");
  out.write(text);
  out.close();
}

void add_metric_options(Command& command, EvaluateCommand& o) {
  Command bleu = command.group("BLEU");
  bleu.option("--tokenize", o.tokenize,
              "Tokenizer; auto: chosen by -l, else by the script of the references")
      .among({"auto", "13a", "intl", "zh", "char", "none"})
      .with_default();
  bleu.option("--smooth", o.smooth, "Smoothing of n-gram orders without a match")
      .among({"exp", "floor", "add-k", "none"})
      .with_default();
  bleu.option("--smooth-value", o.smooth_value,
              "Value for floor (default 0.1) and add-k (default 1)")
      .not_negative();

  Command chrf = command.group("chrF");
  chrf.option("--chrf-char-order", o.chrf.char_order, "Maximum length of character n-grams")
      .within(1, 100)
      .with_default();
  chrf.option("--chrf-word-order", o.chrf.word_order, "Maximum length of word n-grams; chrf++: 2")
      .within(0, 100)
      .with_default();
  chrf.option("--chrf-beta", o.chrf.beta, "Weight of recall relative to precision")
      .within(1, 100)
      .with_default();
  chrf.flag("--chrf-whitespace", o.chrf.whitespace, "Count white space as a character");
  chrf.flag("--chrf-eps-smoothing", o.chrf.eps_smoothing, "Average the F-score over all orders");

  Command ter = command.group("TER");
  ter.flag("--ter-normalized", o.ter.normalized, "Split punctuation off words first");
  ter.flag("--ter-no-punct", o.ter.no_punct, "Ignore punctuation");
  ter.flag("--ter-asian-support", o.ter.asian_support,
           "Apply the two options above to Chinese and Japanese characters too");
  ter.flag("--ter-case-sensitive", o.ter.case_sensitive, "Distinguish upper and lower case");
}

void add_alignment_options(Command& command, EvaluateCommand& o) {
  Command group = command.group("Word alignment");
  group.flag("--aer", o.aer,
             "Print the alignment error rate of -i files (Pharaoh) against the -r file (Talp); "
             "ignores -m");
  group.option("--gold-from", o.gold_from, "Number of the first word in the -r file")
      .within(0, 1)
      .with_default();
}

void add_test_options(Command& command, EvaluateCommand& o) {
  Command tests = command.group("Significance");
  tests.flag("--confidence", o.confidence,
             "Print the 95 % confidence interval of one system, by bootstrap");
  Option bootstrap = tests.flag("--paired-bs", o.paired_bs,
                                "Compare systems with the first one by paired bootstrap");
  tests
      .flag("--paired-ar", o.paired_ar,
            "Compare systems with the first one by approximate randomisation")
      .excludes(bootstrap);
  constexpr int kMost = 100'000'000;
  tests.option("--confidence-n", o.confidence_n, "Number of samples")
      .within(1, kMost)
      .with_default();
  tests.option("--paired-bs-n", o.paired_bs_n, "Number of samples").within(1, kMost).with_default();
  tests.option("--paired-ar-n", o.paired_ar_n, "Number of trials").within(1, kMost).with_default();
}

void add_common_options(Command& command, EvaluateCommand& o) {
  command
      .option("-r,--reference,reference", o.references,
              "Reference files, one sentence per line (.gz, - for stdin)")
      .required()
      .takes("FILE");
  command
      .option("-i,--input", o.inputs,
              "Hypothesis files, the baseline first; default: standard input")
      .takes("FILE");
  command.option("-m,--metrics", o.metrics, "Metrics to compute")
      .among({"bleu", "chrf", "chrf++", "ter"})
      .split_at_commas()
      .with_default();
  command
      .option(
          "-l,--language-pair", o.language_pair,
          "Source and target language, for example en-zh; the target selects the tokenizer of BLEU")
      .takes("PAIR");
  command.flag("--lowercase", o.lowercase,
               "Ignore case in BLEU and chrF (for TER see --ter-case-sensitive)");
  command.option("-f,--format", o.format, "Output format").among({"text", "json"}).with_default();
  command.option("-w,--width", o.width, "Number of decimals").within(0, 15).with_default();
  command.flag("-b,--score-only", o.score_only, "Print only the score");
  command.flag("--short", o.abbreviated, "Abbreviate the signature");
  command.flag("--sentence-level", o.sentence_level,
               "Print one line per sentence instead of one for the corpus");
}

}  // namespace

void add_evaluate(Command& program) {
  Command command = program.command(
      "evaluate", "Score translations (BLEU, chrF, TER, significance) and word alignments (AER)");
  auto options = std::make_shared<EvaluateCommand>();
  add_common_options(command, *options);
  add_metric_options(command, *options);
  add_test_options(command, *options);
  add_alignment_options(command, *options);
  command.footer(kExamples);
  command.runs([command, options] {
    options->bleu.tokenize = bleu_tokenizer(options->tokenize);
    options->json = options->format == "json";
    options->bleu.smooth = bleu_smoothing(options->smooth);
    options->bleu.lowercase = options->chrf.lowercase = options->lowercase;
    if (command.given("--smooth-value")) options->bleu.smooth_value = options->smooth_value;
    if (options->aer && !command.given("--width")) options->width = 2;
    evaluate(*options);
  });
}

}  // namespace fovea

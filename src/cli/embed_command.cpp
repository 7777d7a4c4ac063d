#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_output.h"
#include "base/check.h"
#include "base/log.h"
#include "base/signals.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "eval/metric_tokenizers.h"
#include "vectors/skip_gram.h"

namespace fovea {
namespace {

constexpr int64_t kFewWords = 10'000'000;  // fewer words in all epochs together cause a warning

constexpr const char* kExamples = R"(Examples:
  Learn word vectors from lower-cased text with punctuation split off:
    fovea embed train.en --tokenize 13a --lowercase -o vectors.vec

  Then find the words with similar vectors:
    fovea neighbours president germany three -v vectors.vec

  Learn vectors for the pieces of a vocabulary, to initialise the embeddings of a model:
    fovea embed train.en --vocab model/vocab.spm --size 256 --min-count 1 -o pieces.vec

  Larger vectors, which takes longer, in word2vec's binary format:
    fovea embed train.*.gz --size 300 --epochs 10 --negatives 10 --format binary -o vectors.bin

Words are separated by blanks. Each word predicts the words around it (skip-gram with negative
sampling, Mikolov et al. 2013). Frequent words are skipped at random (--subsample). The same text,
options and processor give the same file with any number of --threads. Ctrl-C writes the vectors
learned so far. Words per second include the skipped words, as in word2vec.)";

struct EmbedCommand {
  std::vector<std::string> inputs;
  std::string output, vocabulary, tokenize = "none", format = "text";
  bool lowercase = false;
  int64_t min_count = 5;
  SkipGramOptions learning;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

WordStream read_text(const EmbedCommand& c) {
  Progress progress("reading", 0, {.unit = "lines", .interval = 10});
  WordStreamOptions options;
  options.min_count = c.min_count;
  options.progress = [&](int64_t lines) { progress.set(lines); };
  std::optional<Vocabulary> vocabulary;
  if (!c.vocabulary.empty()) {
    vocabulary = Vocabulary::load(c.vocabulary);
    options.vocabulary = &*vocabulary;
  }
  const BleuTokenizer tokenizer = bleu_tokenizer(c.tokenize);
  if (tokenizer != BleuTokenizer::none || c.lowercase)
    options.prepare = [&c, tokenizer](std::string_view line) {
      Characters text = characters_of(line);
      if (c.lowercase) text = lower_case(text);
      return utf8_of(tokenize_for_bleu(tokenizer, text));
    };
  WordStream text = read_words(c.inputs, options);
  progress.finish();
  log_info("{}", text.summary());
  if (static_cast<int64_t>(text.ids.size()) * c.learning.epochs < kFewWords)
    log_warning(
        "{} words, read {} times, are not enough for good word vectors: all vectors may be "
        "similar; "
        "give more text, raise --epochs or lower --size",
        with_commas(static_cast<int64_t>(text.ids.size())), c.learning.epochs);
  return text;
}

// Throws if the output cannot be written. Call it before the training, which may take hours.
void check_output(const EmbedCommand& c) {
  namespace fs = std::filesystem;
  check(!c.output.empty(), ExitCode::usage, "no output file; give one with -o FILE");
  check(!c.output.ends_with(".gz"), ExitCode::usage, "-o ", c.output,
        ": vectors cannot be written compressed; omit .gz and compress the file afterwards");
  const fs::path parent = fs::path(c.output).parent_path();
  std::error_code error;
  check(parent.empty() || fs::is_directory(parent, error), ExitCode::files, parent.string(),
        ": no such directory; create it first");
  check(!fs::is_directory(c.output, error), ExitCode::files, c.output,
        " is a directory; give a file in it");
  check_writable(c.output);
}

void embed(EmbedCommand& c) {
  check_output(c);
  check(!c.inputs.empty(), ExitCode::usage, "no text files; give at least one FILE");
  const WordStream text = read_text(c);
  const int64_t total = c.learning.epochs * static_cast<int64_t>(text.ids.size());
  Progress progress("learning", total, {.unit = "words", .interval = 10});
  watch_signals();  // from here on, a signal ends the training and saves the vectors
  int64_t learned = 0, pairs = 0;
  double loss = 0;
  c.learning.progress = [&](const SkipGramProgress& p) {
    loss = p.loss;
    learned = p.words;
    pairs += p.pairs;
    progress.note(fmt::format("loss {:.4f} | rate {:.2e}", loss, p.rate));
    progress.set(p.words);
    return !stop_requested();
  };
  const auto begin = std::chrono::steady_clock::now();
  const WordVectors vectors = train_skip_gram(text, c.learning);
  const double seconds = seconds_since(begin);
  progress.finish();
  if (pairs == 0 && !stop_requested())
    log_warning(
        "nothing was learned and the vectors are random: every line has a single word, or all "
        "words were skipped as frequent; give more text or use --subsample 0");
  if (stop_requested())
    log_warning("interrupted after {} of {} words; writing the vectors learned so far",
                with_commas(learned), with_commas(total));
  vectors.write(c.output, c.format == "binary" ? VectorFormat::binary : VectorFormat::text);
  log_info("wrote {}: {} vectors of size {}; {} words in {}, {} words/s, loss {:.4f}", c.output,
           with_commas(vectors.words()), vectors.size(), with_commas(learned),
           short_duration(seconds),
           with_commas(std::llround(static_cast<double>(learned) / std::max(seconds, 1e-9))), loss);
}

void add_learning_options(Command& command, EmbedCommand& c) {
  const auto number = [&](const char* names, int64_t& value, const char* help, int64_t most) {
    command.option(names, value, help).within(int64_t{1}, most).with_default();
  };
  number("--size", c.learning.size, "Size of each vector", WordVectors::kMaxSize);
  number("--window", c.learning.window,
         "Maximum number of context words on each side; the number is random for each word", 1000);
  number("--negatives", c.learning.negatives, "Negative samples per pair", 1000);
  number("--epochs", c.learning.epochs, "Number of passes over the text", 100'000);
  number("--min-count", c.min_count, "Ignore words that occur less often", int64_t{1} << 40);
  command
      .option("--subsample", c.learning.subsample,
              "Randomly skip words with a larger share of the text; 0: never")
      .within(0.0, 1.0)
      .with_default();
  command.option("--rate", c.learning.rate, "Initial learning rate; it decays to almost 0")
      .within(1e-9, 10.0)
      .with_default();
  command.option("--seed", c.learning.seed, "Random seed").with_default();
}

}  // namespace

void add_embed(Command& program) {
  Command command = program.command("embed", "Learn word vectors from text (skip-gram)");
  auto shared = std::make_shared<EmbedCommand>();
  EmbedCommand& c = *shared;
  command.option("inputs", c.inputs, "Text files, one sentence per line (.gz, - for stdin)")
      .takes("FILE");
  command.option("-o,--output", c.output, "File to write").takes("FILE");
  command.option("--format", c.format, "Output format: text (.vec) or binary format of word2vec")
      .among({"text", "binary"})
      .with_default();
  command.option("--tokenize", c.tokenize, "Tokenise like 'fovea evaluate --tokenize'")
      .among({"none", "13a", "intl", "zh", "char"})
      .with_default();
  command.flag("--lowercase", c.lowercase, "Convert the text to lower case");
  command.option("--vocab", c.vocabulary, "Split the text into the pieces of this vocabulary")
      .takes("VOCABULARY");
  add_learning_options(command, c);
  command.footer(kExamples);
  command.runs([shared] { embed(*shared); });
}

}  // namespace fovea

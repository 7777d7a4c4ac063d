#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_output.h"
#include "base/check.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "text/vocabulary_build.h"
#include "text/vocabulary_fit.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  Learn 8,000 pieces shared by both languages and write pieces/vocab.spm:
    fovea vocab --kind unigram --size 8000 -o pieces/ train.en train.de

  Write all words that occur at least twice to words.txt, most frequent first:
    fovea vocab --kind words --min-count 2 -o words.txt train.en.gz

  Show how a vocabulary splits a text, as pieces and ids:
    fovea vocab --show en-de "A small dog runs through the snow."

With --kind pieces, the text must already be split ("hou@@ se"). The command makes one joint
vocabulary for all files; run it once per language for separate ones. The kinds are those of
vocabulary.kind in a recipe.)";

constexpr int64_t kCheckedLines = 100'000;  // maximum number of lines per file for VocabularyFit

struct VocabOptions {
  std::string kind = "unigram", output, show;
  std::vector<std::string> inputs;
  SentencePieceOptions pieces;
  int32_t size = 8000;
  bool size_given = false;
  int64_t min_count = 1;

  bool subwords() const { return kind == "unigram" || kind == "bpe"; }
};

// Returns the path of the file to write: vocab.spm or vocab.txt in a folder, or the given file with
// the extension of its format.
std::string output_path(const VocabOptions& options) {
  namespace fs = std::filesystem;
  const std::string ending = options.subwords() ? ".spm" : ".txt";
  const fs::path path(options.output);
  std::error_code error;
  const bool folder = fs::is_directory(path, error) || path.extension().empty();
  check(folder || path.extension() == ending, ExitCode::usage, "-o ", options.output,
        ": a vocabulary of kind ", options.kind, " needs a file name ending in ", ending,
        "; give such a file name or a folder");
  return folder ? (path / ("vocab" + ending)).string() : options.output;
}

void make_parent(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  check(!error, ExitCode::files, parent.string(), ": cannot be created: ", error.message());
}

Vocabulary build(const VocabOptions& options) {
  Progress progress("reading", 0, {.unit = "lines", .interval = 10});
  const LinesRead report = [&](int64_t lines) { progress.set(lines); };
  if (options.subwords()) {
    SentencePieceOptions pieces = options.pieces;
    pieces.model = options.kind == "bpe" ? SubwordModel::bpe : SubwordModel::unigram;
    pieces.size = options.size;
    pieces.progress = report;
    pieces.learning = [&] {
      progress.finish();
      log_info("learning {} pieces", with_commas(options.size));
    };
    return train_sentencepiece(options.inputs, pieces);
  }
  CountOptions count;
  count.min_count = options.min_count;
  count.max_size = options.size_given ? options.size : 0;
  count.progress = report;
  if (options.kind == "characters") return build_character_vocabulary(options.inputs, count);
  if (options.kind == "pieces") return build_piece_vocabulary(options.inputs, count);
  if (options.kind == "tokens") return build_token_vocabulary(options.inputs, count);
  return build_word_vocabulary(options.inputs, count);
}

void log_fit(const Vocabulary& vocabulary, const std::vector<std::string>& files) {
  VocabularyFit fit;
  for (const std::string& path : files) {
    if (path == "-") continue;  // standard input can be read only once
    LineReader reader(path);
    int64_t lines = 0;
    for (TextLine line; lines < kCheckedLines && reader.next(line); ++lines)
      if (is_utf8(line.text)) fit.add(vocabulary, line.text);
  }
  if (fit.lines > 0) log_info("checked on {}", fit.summary());
}

void make(const VocabOptions& options) {
  check(!options.output.empty(), ExitCode::usage, "no output; give it with -o FOLDER or -o FILE");
  check(!options.inputs.empty(), ExitCode::usage, "no text files; give at least one FILE");
  const std::string path = output_path(options);
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  check(!std::filesystem::exists(folder / "config.yml", error), ExitCode::usage, "-o ",
        options.output,
        ": the folder holds a model, which needs its own vocabulary; choose another folder");
  check(options.min_count == 1 || !options.subwords(), ExitCode::usage, "--min-count ",
        options.min_count, ": ", options.kind, " learns pieces and does not use word counts; ",
        "omit it, or choose --kind words, characters, pieces or tokens");
  make_parent(path);
  check_writable(path);
  const Vocabulary vocabulary = build(options);
  vocabulary.save(path);
  log_info("wrote {}: {} entries of kind {}", path, with_commas(vocabulary.size()), options.kind);
  if (options.size_given && options.subwords() && vocabulary.size() < options.size)
    log_warning("--size {}: the text yields only {} pieces", with_commas(options.size),
                with_commas(vocabulary.size()));
  log_fit(vocabulary, options.inputs);
}

// Loads a vocabulary file, or the source vocabulary of a model.
Vocabulary vocabulary_to_show(const std::string& name) {
  const std::string path = model_or_file(name);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return Vocabulary::load(path);
  const VocabularyPair both = load_vocabularies(path);
  if (both.source.fingerprint() != both.target.fingerprint())
    log_info("{}: showing the source vocabulary; for the target vocabulary give its file", path);
  return both.source;
}

void show(const VocabOptions& options) {
  const Vocabulary vocabulary = vocabulary_to_show(options.show);
  OutputFile out("-");
  const auto print = [&](std::string_view text) {
    const std::vector<int32_t> ids = vocabulary.encode(text);
    out.write_line(
        fmt::format("{}\n{}", fmt::join(vocabulary.pieces(ids), " "), fmt::join(ids, " ")));
  };
  for (const std::string& text : options.inputs) print(text);
  if (options.inputs.empty()) {
    LineReader reader("-");
    for (TextLine line; reader.next(line);) print(line.text);
  }
  out.close();
}

}  // namespace

void add_vocab(Command& program) {
  Command command =
      program.command("vocab", "Make a vocabulary from text, or show how it splits text");
  auto options = std::make_shared<VocabOptions>();
  VocabOptions& o = *options;
  command
      .option("inputs", o.inputs,
              "Text files, one sentence per line (.gz, - for stdin); with --show: texts")
      .takes("FILE");
  command.option("-k,--kind,-t,--type", o.kind, "Kind of vocabulary: how text is split")
      .synonyms({{"word", "words"}, {"char", "characters"}})
      .among({"unigram", "bpe", "words", "characters", "pieces", "tokens"})
      .with_default();
  command
      .option("-s,--size", o.size,
              "Number of entries; for words, characters, pieces and tokens the maximum")
      .within(5, 1 << 20)
      .with_default();
  command.option("-o,--output", o.output, "Folder or file to write").takes("PATH");
  command
      .option("--show", o.show,
              "Print the pieces and ids of texts, with this vocabulary or that of a model")
      .takes("FILE_OR_MODEL");
  command.option("--min-count", o.min_count, "Omit entries that occur less often")
      .positive()
      .with_default();
  command
      .option("--character-coverage", o.pieces.character_coverage,
              "Fraction of the text whose characters get a piece (unigram, bpe)")
      .within(0.9, 1.0)
      .with_default();
  command.flag("--byte-fallback,!--no-byte-fallback", o.pieces.byte_fallback,
               "Represent unknown characters as bytes (default), or do not (unigram, bpe)");
  command.option("--max-lines", o.pieces.max_lines, "Learn from a random sample of at most N lines")
      .positive()
      .with_default();
  command.option("--seed", o.pieces.seed, "Random seed of the sample").with_default();
  command.footer(kExamples);
  command.runs([options, command] {
    options->size_given = command.given("--size");
    options->show.empty() ? make(*options) : show(*options);
  });
}

}  // namespace fovea

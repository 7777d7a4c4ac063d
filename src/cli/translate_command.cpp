#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_output.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/input_warnings.h"
#include "cli/model_options.h"
#include "cli/search_choice.h"
#include "cli/translate_input.h"
#include "cli/translation_format.h"
#include "decode/glossary.h"
#include "decode/translator.h"
#include "document/plain_text.h"
#include "text/corpus.h"
#include "text/readability.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  One sentence with the bundled model:
    fovea translate "A small dog runs through the snow."

  A file with your own model, line by line, and its BLEU:
    fovea translate -m model -i test.en -o test.out
    fovea evaluate -r test.de -i test.out

  A file whose lines hold whole paragraphs; each stays one line:
    fovea translate --split -i letters.txt -o letters.de

  In a pipe, with four alternatives per line and their scores:
    cat test.en | fovea translate -m model --n-best 4 --format jsonl

  An ensemble of two models, with word alignments:
    fovea translate -m first -m second --alignment -i test.en

  Translations that use the terms of a glossary (lines such as "dog<TAB>Rüde"):
    fovea translate -m model --glossary terms.tsv -i test.en

  The same with lines of JSON, such as {"source": "A dog.", "terms": ["Rüde"], "prefix": "Ein"}:
    fovea translate -m model --input-format jsonl -i test.jsonl

  A different translation each time you change the seed:
    fovea translate --sample --temperature 0.8 --top-k 10 --seed 7 "Hello."

Each line of input gives one line of output, an empty one for an empty line (with --format marian
or fairseq, one group of lines). With --split each line is split into sentences, which are
translated one by one; the blanks between them are kept. Texts given as arguments are split too,
except with --alignment, --prefix or a --format other than text. Sentences of more than 600 bytes
are split, if possible after a comma. Sentences without letters or digits are not translated.

Standard output and pipes receive small chunks at first, later up to --chunk lines at a time. If the
program that writes the input pauses, the lines read so far are translated at once, so a coprocess
can write a line and wait for its translation. The file of -o is replaced when all lines are
translated; if the program stops early, the file keeps its old contents. The result of a line
does not depend on the other lines. Progress goes to standard error; percentage and remaining time
are known if the input is a file. A sentence longer than the model accepts is truncated, with a
warning; --split avoids this.

Scores are log-probability / length^A; the length includes the end symbol. The coverage penalty (Wu
et al. 2016) is applied to finished hypotheses, not during the search; an ensemble uses the mean of
the penalties of its models.

Warnings on standard error name lines with characters unknown to the model, characters of a line
that its translation lacks, and input that is not in the source language of the model. A character
that the model does not know is replaced by its compatibility form if the model knows that ("ﬁ" by
"fi").)";

struct TranslateCommand {
  ModelChoice model;
  TranslateOptions options;
  SearchChoice search;
  std::vector<std::string> texts;
  std::vector<std::string> inputs;
  std::string output = "-", format = "text", input_format = "text";
  int64_t chunk = 4096;
  bool split = false, no_split = false;
  int64_t written = 0;                       // number of lines so far
  int64_t chunk_lines = 0, chunk_units = 0;  // in this chunk; units: lines or sentences

  // Returns the name of a given option that applies only to whole lines, or "".
  std::string whole_line_option() const {
    if (search.n_best > 1) return "--n-best";
    if (options.attention) return "--attention";
    if (options.alignment) return "--alignment";
    if (format != "text") return "--format " + format;
    return search.prefix.empty() ? "" : "--prefix";
  }

  // Texts given as arguments are split by default; lines of files are not.
  bool splits() const {
    return split || (!texts.empty() && !no_split && whole_line_option().empty());
  }

  std::vector<std::string> input_files() const {  // if no texts are given
    return inputs.empty() ? std::vector<std::string>{"-"} : inputs;
  }

  // Returns false if a user types the input, or if the terminal shows the translations.
  bool shows_progress() const {
    const bool typed = inputs.empty() && isatty(STDIN_FILENO);
    return texts.empty() && !typed && !(output == "-" && isatty(STDOUT_FILENO));
  }

  TranslationFormat output_format() const {
    if (format == "jsonl") return TranslationFormat::jsonl;
    if (format == "marian") return TranslationFormat::marian;
    return format == "fairseq" ? TranslationFormat::fairseq : TranslationFormat::text;
  }
};

// Whether a text looks like a path: "test.en", "./test", "/data/test". A path has no blank, and it
// has a file extension or a beginning that words do not have.
bool looks_like_a_path(const std::string& text) {
  if (text.find_first_of(" \t\n") != std::string::npos) return false;
  const std::string ending = std::filesystem::path(text).extension().string();
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool named = ending.size() >= 3 && ending.size() <= 6 && text.size() > ending.size() + 1 &&
                     std::all_of(ending.begin() + 1, ending.end(), lower);
  return named || text.starts_with("./") || text.starts_with("../") ||
         (text.starts_with('/') && text.size() > 1);
}

void check_usage(const TranslateCommand& c) {
  check(c.texts.empty() || c.inputs.empty(), ExitCode::usage,
        "give texts or -i files to translate, not both");
  check(!c.split || c.whole_line_option().empty(), ExitCode::usage,
        "--split: ", c.whole_line_option(),
        " applies to whole lines, not to their sentences; omit one of the two");
  check(c.format != "text" || c.search.n_best == 1, ExitCode::usage,
        "--n-best: plain text has one line per sentence; add --format jsonl, marian or fairseq");
  check(!c.options.attention || c.format == "jsonl", ExitCode::usage,
        "--attention: matrices need --format jsonl; to see one, use 'fovea show'");
  for (const std::string& input : c.inputs) check_not_overwritten(input, c.output);
  for (const std::string& text : c.texts) {
    std::error_code error;  // ignored: a long text is not a valid file name
    if (std::filesystem::is_regular_file(text, error))
      log_warning("'{}' is translated as text; to translate the lines of this file, use -i {}",
                  text, text);
    else if (looks_like_a_path(text))
      log_warning("'{}' is translated as text: there is no such file; use -i for files", text);
  }
}

// A source of input lines.
struct LineInput {
  std::function<bool(std::string&)> next;  // false at the end
  // Returns false if next() would wait for further input.
  std::function<bool()> ready = [] { return true; };
};

// A pipeline from input lines to output. It translates lines in chunks and writes each chunk before
// it reads the next.
class ChunkPipeline {
 public:
  ChunkPipeline(TranslateCommand& command, const Translator& translator, const ModelBundle& bundle,
                PassageOptions passages)
      : command_(command), translator_(translator), passages_(std::move(passages)),
        glossary_(command.search.read_glossary(bundle.target)), target_(bundle.target),
        out_(command.output), warnings_(bundle) {}

  // Translates one input. Chunks grow from kFirstChunk lines to `most`, so the first result is
  // early.
  void run(const std::string& name, size_t most, const LineInput& input) {
    std::string line;
    int64_t number = 0;
    size_t chunk = std::min(kFirstChunk, most);
    sentences_ = 0;
    for (;;) {
      if (!lines_.empty() && !input.ready()) flush(name, number);
      if (!input.next(line)) break;
      ++number;
      add(line, name + ":" + std::to_string(number));
      if (lines_.size() < chunk) continue;
      flush(name, number);
      chunk = std::min(2 * chunk, most);
    }
    flush(name, number);
  }

  void close() { out_.close(); }

 private:
  static constexpr size_t kFirstChunk = 64;

  void add(const std::string& line, const std::string& where) {
    if (command_.input_format == "jsonl")
      lines_.push_back(parse_json_line(line, id_++, where));
    else
      lines_.push_back({id_++, line});
  }

  void flush(const std::string& name, int64_t last) {
    if (lines_.empty()) return;
    const int64_t first = last - std::ssize(lines_) + 1;
    const std::vector<std::string> lines = texts();
    warnings_.check_lines(lines, name, first);
    command_.chunk_lines = command_.chunk_units = std::ssize(lines_);
    const std::vector<Translation> translations =
        command_.splits() ? translate_sentences(name, first) : translate_lines(name, first);
    std::vector<std::string> translated;
    for (const Translation& translation : translations) translated.push_back(translation.text);
    warnings_.check_translations(lines, translated, name, first);
    const OutputDetails details{.alignment = command_.options.alignment,
                                .n_best = command_.search.n_best > 1};
    for (size_t i = 0; i < lines_.size(); ++i)
      out_.write(format_translation(command_.output_format(), lines_[i], translations[i], details));
    out_.flush();
    lines_.clear();
  }

  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const InputLine& line : lines_) texts.push_back(line.text);
    return texts;
  }

  std::vector<Translation> translate_lines(const std::string& name, int64_t first) {
    const std::vector<std::string> lines = texts();
    std::vector<SentenceConstraints> constraints = constraints_of(lines);
    for (size_t i = 0; i < lines_.size(); ++i)
      add_own(lines_[i], name + ":" + std::to_string(first + static_cast<int64_t>(i)),
              constraints[i]);
    auto translations =
        translator_.translate(lines, {.file = name, .first = first, .constraints = constraints});
    command_.written += std::ssize(translations);
    return translations;
  }

  // The terms of the glossary in each text.
  std::vector<SentenceConstraints> constraints_of(std::span<const std::string> texts) const {
    std::vector<SentenceConstraints> constraints(texts.size());
    if (glossary_)
      for (size_t i = 0; i < texts.size(); ++i)
        constraints[i].terms = required_terms(glossary_->matches(texts[i]), target_);
    return constraints;
  }

  // Adds the constraints that the line itself has.
  void add_own(const InputLine& line, const std::string& where, SentenceConstraints& own) const {
    own.prefix = target_.encode(clean_line(line.prefix).text);
    for (const std::string& term : line.terms) {
      TermPieces pieces = term_pieces(target_, term);
      check(!pieces.empty(), ExitCode::data, where, ": the model has no pieces for the term '",
            printable(term), "'; remove it");
      own.terms.push_back(std::move(pieces));
    }
  }

  // Splits lines into sentences and translates these. The results have only a text.
  std::vector<Translation> translate_sentences(const std::string& name, int64_t first) {
    std::vector<std::string> texts;
    for (const InputLine& line : lines_) {
      check(line.prefix.empty() && line.terms.empty(), ExitCode::data, name, ":",
            first + std::ssize(texts), ": \"prefix\" and \"terms\" apply to whole lines, not to ",
            "their sentences; omit --split");
      if (!is_utf8(line.text))
        repaired_.add("{}:{}: bytes that are not UTF-8 were replaced by U+FFFD", name,
                      first + std::ssize(texts));
      texts.push_back(replace_invalid_utf8(line.text));
    }
    const PlainTextLines paragraphs(texts, passages_);
    command_.chunk_units = std::ssize(paragraphs.sentences());
    std::vector<int64_t> numbers;
    for (const size_t line : paragraphs.lines())
      numbers.push_back(first + static_cast<int64_t>(line));
    const auto constraints = constraints_of(paragraphs.sentences());
    const auto found =
        translator_.translate(paragraphs.sentences(), {name, sentences_ + 1, numbers, constraints});
    sentences_ += std::ssize(found);
    command_.written += std::ssize(lines_);
    std::vector<Translation> translations;
    for (std::string& text : paragraphs.join(found))
      translations.emplace_back().text = std::move(text);
    return translations;
  }

  TranslateCommand& command_;
  const Translator& translator_;
  PassageOptions passages_;
  std::optional<Glossary> glossary_;
  const Vocabulary& target_;
  WholeFile out_;
  InputWarnings warnings_;
  std::vector<InputLine> lines_;
  LineWarnings repaired_{"lines that are not UTF-8"};
  int64_t id_ = 0;
  int64_t sentences_ = 0;  // number of sentences of this file so far
};

bool is_typed(const std::string& file) { return file == "-" && isatty(STDIN_FILENO); }

TranslateInput open_input(const std::string& file) {
  if (is_typed(file)) log_info("type one sentence per line; Ctrl-D ends the input");
  return TranslateInput(file);
}

// Translates the input files. `first` is the first input if language detection has already opened
// it.
void translate_files(const TranslateCommand& c, ChunkPipeline& pipeline,
                     std::optional<TranslateInput> first) {
  for (const std::string& file : c.input_files()) {
    TranslateInput input = first ? std::move(*first) : open_input(file);
    first.reset();
    const auto next = [&](std::string& text) {
      ReadLine line;
      if (!input.next(line)) return false;
      text = std::move(line.text);
      if (line.cut && c.splits())  // otherwise the translator warns, because its limit is lower
        log_warning(
            "{}: the line is longer than 1 MiB and was truncated; split it into several lines",
            line.where);
      return true;
    };
    pipeline.run(input.name(), static_cast<size_t>(is_typed(file) ? 1 : c.chunk),
                 {next, [&] { return input.ready(); }});
  }
}

// Returns the maximum source length, in pieces, that all models of an ensemble accept.
size_t longest_source(const std::vector<ModelBundle>& bundles) {
  int64_t longest = std::numeric_limits<int64_t>::max();
  for (const ModelBundle& bundle : bundles)
    longest = std::min(longest, bundle.model->max_length() - bundle.model->frame().source_pieces());
  return static_cast<size_t>(longest);
}

// A progress display for the translation of files or of a pipe. Pipes are often part of scripts: if
// standard error is not a terminal, the display begins after kSilence.
class TranslationProgress {
 public:
  // `total` is the number of lines, 0 if it is unknown.
  TranslationProgress(const TranslateCommand& c, int64_t total)
      : command_(c), total_(total), begin_(std::chrono::steady_clock::now()) {
    if (log_format() == LogFormat::tty || (!c.inputs.empty() && c.output != "-")) show();
  }

  // Reports that `done` lines or sentences of the current chunk are translated.
  void set(int64_t done) {
    const int64_t units = std::max<int64_t>(1, command_.chunk_units);
    const int64_t lines = command_.written + done * command_.chunk_lines / units;
    if (!progress_ && std::chrono::steady_clock::now() - begin_ > kSilence) {
      show();
      progress_->begin_at(lines);
    }
    if (progress_) progress_->set(lines);
  }

 private:
  static constexpr std::chrono::seconds kSilence{30};
  void show() { progress_.emplace("translating", total_, ProgressOptions{.unit = "lines"}); }

  const TranslateCommand& command_;
  int64_t total_;
  std::chrono::steady_clock::time_point begin_;
  std::optional<Progress> progress_;
};

// Returns the beginning of the input, for the detection of its language.
std::string sample(const TranslateCommand& c, std::optional<TranslateInput>& input) {
  std::string text;
  for (const std::string& given : c.texts) text += given + "\n";
  if (!input) return text;
  const auto text_of = [&](const std::deque<ReadLine>& lines) {
    std::string all;
    for (const ReadLine& line : lines)
      all += c.input_format == "jsonl" ? parse_json_line(line.text, 0, line.where).text + "\n"
                                       : line.text + "\n";
    return all;
  };
  return text_of(input->look_ahead([&](const std::deque<ReadLine>& lines) {
    return language_despite_names(text_of(lines)).language != kUndetermined;
  }));
}

void translate(TranslateCommand& c) {
  std::signal(SIGPIPE, SIG_DFL);  // with `| head` the program ends without an error message
  check_usage(c);
  c.search.apply_to({}).check();
  std::optional<int64_t> lines;  // counted before any line is read
  if (c.shows_progress()) lines = count_lines(c.input_files());
  std::optional<TranslateInput> first;
  if (c.texts.empty()) first = open_input(c.input_files().front());
  const std::vector<ModelBundle> bundles = load_models(c.model, [&] { return sample(c, first); });
  const PrecisionScope precision(c.model.matmul_precision());

  c.options.search = c.search.options(bundles.front());
  std::optional<TranslationProgress> progress;
  if (c.shows_progress()) progress.emplace(c, lines.value_or(0));
  c.options.progress = [&](int64_t done) {
    if (progress) progress->set(done);
    return true;
  };
  const Translator translator(models_of(bundles), bundles.front().source, bundles.front().target,
                              c.options);
  const auto languages = languages_of_model(bundles.front().directory);
  const SentenceLimit limit{&bundles.front().source, longest_source(bundles)};
  ChunkPipeline pipeline(
      c, translator, bundles.front(),
      {languages ? languages->first : "", languages ? languages->second : "", limit});
  if (c.texts.empty()) {
    translate_files(c, pipeline, std::move(first));
  } else {
    size_t at = 0;
    const auto next = [&](std::string& line) {
      if (at == c.texts.size()) return false;
      line = c.texts[at++];
      return true;
    };
    pipeline.run("argument", c.texts.size(), {next});
  }
  pipeline.close();
}

}  // namespace

void add_translate(Command& program) {
  Command command = program.command("translate", "Translate text: arguments, files or a pipe");
  auto shared = std::make_shared<TranslateCommand>();
  TranslateCommand& c = *shared;
  command.option("text", c.texts, "Texts to translate; default: -i files, else standard input")
      .takes("TEXT");
  command.option("-i,--input", c.inputs, "Files, one sentence per line (.gz, - for stdin)")
      .takes("FILE");
  Option split = command.flag(
      "--split", c.split,
      "Split lines into sentences, translate each and join the results; sentences longer "
      "than 600 bytes or the limit of the model are split too");
  command.flag("--no-split", c.no_split, "Do not split texts given as arguments").excludes(split);
  command.option("-o,--output", c.output, "File to write (.gz, - for stdout)").takes("FILE");
  command.option("-f,--format", c.format, "Output format")
      .among({"text", "jsonl", "marian", "fairseq"})
      .with_default();
  command
      .option("--input-format", c.input_format,
              "jsonl: objects with \"source\", and perhaps \"prefix\" and a list \"terms\" of its "
              "translation; other keys are copied to the output")
      .among({"text", "jsonl"})
      .with_default();
  command.flag("--alignment", c.options.alignment,
               "Write word alignments 0-0 1-2 (source-target) from the mean cross-attention");
  command.flag("--attention", c.options.attention, "Write all attention matrices (jsonl)");
  command
      .option("--batch-tokens", c.options.batch_tokens,
              "Maximum number of source pieces computed together")
      .within(1, 1 << 20)
      .with_default();
  command
      .option("--batch-sentences", c.options.batch_sentences,
              "Maximum number of lines computed together")
      .within(1, 1 << 20)
      .with_default();
  command
      .option("--chunk", c.chunk,
              "Maximum number of lines translated before the results are written")
      .within(1, 1 << 20)
      .with_default();
  c.search.add_to(command);
  add_model_options(command, c.model, ModelCount::ensemble, DefaultModel::by_text);
  command.footer(kExamples);
  command.runs([shared] { translate(*shared); });
}

}  // namespace fovea

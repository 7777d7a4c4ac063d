#include "cli/translate.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/lines.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/options.h"
#include "cli/paragraphs.h"
#include "cli/session.h"
#include "cli/translation_format.h"
#include "cli/whole_file.h"
#include "decode/translate.h"
#include "text/corpus.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  One sentence with the model that comes along:
    fovea translate "A small dog runs through the snow."

  A file with your own model, line by line, and its BLEU:
    fovea translate -m model -i test.en -o test.out
    fovea evaluate -r test.de -i test.out

  A file whose lines hold whole paragraphs; each stays one line:
    fovea translate --split -i letters.txt -o letters.de

  In a pipe, with four alternatives each and their scores:
    cat test.en | fovea translate -m model --n-best 4 --format jsonl

  An ensemble of two models, word alignments beside the text:
    fovea translate -m first -m second --alignment -i test.en

  A different translation each time you change the seed:
    fovea translate --sample --temperature 0.8 --top-k 10 --seed 7 "Hello."

Each line in gives one line out, empty for an empty line (with --format marian or fairseq, one
group of lines). With --split a line is cut into its sentences, each is translated as if it were a
line of its own, and the blanks between them stay; so it is with texts given as arguments, unless
they ask for what a whole line has: --alignment, --prefix, or a --format other than text. A sentence
of more than 600 bytes is cut, after a comma where there is one; one without letters or digits
stays as it is.

Standard output and pipes get --chunk lines at a time; a file named by -o appears when all lines are
translated, and what it held before stays if the program is stopped. The result of a line does not
depend on the other lines. Scores are log-probability / length^A, the end symbol counted. The
coverage penalty (Wu et al. 2016) is applied to the finished translations of the beam, not during
the search.)";

struct TranslateCommand {
  ModelChoice model;
  TranslateOptions options;
  SamplerOptions sampler;
  bool sample = false;
  std::vector<std::string> texts;
  std::vector<std::string> inputs;
  std::string prefix;
  std::string output = "-", format = "text", input_format = "text";
  int64_t chunk = 4096;
  bool split = false, no_split = false;
  int64_t written = 0;  // lines so far; sentences, where lines are split

  // The option that asks for something of whole lines, which pieces do not have; or nothing.
  std::string about_whole_lines() const {
    if (options.search.n_best > 1) return "--n-best";
    if (options.attention) return "--attention";
    if (options.alignment) return "--alignment";
    if (format != "text") return "--format " + format;
    return prefix.empty() ? "" : "--prefix";
  }

  // A file may have long sentences, but who typed a text may not know what a line is.
  bool splits() const {
    return split || (!texts.empty() && !no_split && about_whole_lines().empty());
  }

  TranslationFormat output_format() const {
    if (format == "jsonl") return TranslationFormat::jsonl;
    if (format == "marian") return TranslationFormat::marian;
    return format == "fairseq" ? TranslationFormat::fairseq : TranslationFormat::text;
  }
};

// "test.en", "./test", "/data/test": no blank, and an ending or a beginning that words do not have.
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
  check(c.texts.empty() || c.inputs.empty(), Exit::usage,
        "give texts or -i files to translate, not both");
  check(!c.split || c.about_whole_lines().empty(), Exit::usage, "--split: ", c.about_whole_lines(),
        " is for whole lines, and says nothing of their sentences; leave one of the two out");
  check(c.format != "text" || c.options.search.n_best == 1, Exit::usage,
        "--n-best: plain text has one line per sentence; add --format jsonl, marian or fairseq");
  check(!c.options.attention || c.format == "jsonl", Exit::usage,
        "--attention: matrices need --format jsonl; to see one, use 'fovea show'");
  for (const std::string& input : c.inputs) check_not_overwritten(input, c.output);
  for (const std::string& text : c.texts) {
    std::error_code error;  // a long text is no name of a file
    if (std::filesystem::is_regular_file(text, error))
      log_warning("'{}' is translated as a text; for the lines of that file: -i {}", text, text);
    else if (looks_like_a_path(text))
      log_warning("'{}' is translated as a text: there is no such file; files are named with -i",
                  text);
  }
}

// Lines in chunks, each translated as a whole and written before the next is read.
class Stream {
 public:
  Stream(TranslateCommand& command, const Translator& translator, std::string language)
      : command_(command), translator_(translator), language_(std::move(language)),
        out_(command.output) {}

  void run(const std::string& name, size_t chunk, const std::function<bool(std::string&)>& next) {
    std::string line;
    int64_t number = 0;
    sentences_ = 0;
    while (next(line)) {
      ++number;
      add(line, name + ":" + std::to_string(number));
      if (lines_.size() >= chunk) flush(name, number);
    }
    flush(name, number);
  }

  void close() { out_.close(); }

 private:
  void add(const std::string& line, const std::string& where) {
    if (command_.input_format == "jsonl")
      lines_.push_back(parse_json_line(line, id_++, where));
    else
      lines_.push_back({id_++, line});
  }

  void flush(const std::string& name, int64_t last) {
    if (lines_.empty()) return;
    const int64_t first = last - std::ssize(lines_) + 1;
    const std::vector<Translation> translations =
        command_.splits() ? translate_sentences(name, first) : translate_lines(name, first);
    const Details details{.alignment = command_.options.alignment,
                          .n_best = command_.options.search.n_best > 1};
    for (size_t i = 0; i < lines_.size(); ++i)
      out_.write(format_translation(command_.output_format(), lines_[i], translations[i], details));
    out_.flush();
    lines_.clear();
  }

  std::vector<Translation> translate_lines(const std::string& name, int64_t first) {
    std::vector<std::string> texts;
    for (const InputLine& line : lines_) texts.push_back(line.text);
    auto translations = translator_.translate(texts, {name, first});
    command_.written += std::ssize(texts);
    return translations;
  }

  // Of each line its text alone.
  std::vector<Translation> translate_sentences(const std::string& name, int64_t first) {
    std::vector<std::string> texts;
    for (const InputLine& line : lines_) {
      if (!is_utf8(line.text))
        repaired_.add("{}:{}: bytes that are not UTF-8 were replaced by U+FFFD", name,
                      first + std::ssize(texts));
      texts.push_back(replace_invalid_utf8(line.text));
    }
    const Paragraphs paragraphs(texts, language_);
    std::vector<int64_t> numbers;
    for (const size_t line : paragraphs.lines())
      numbers.push_back(first + static_cast<int64_t>(line));
    const auto found =
        translator_.translate(paragraphs.sentences(), {name, sentences_ + 1, numbers});
    sentences_ += std::ssize(found);
    command_.written += std::ssize(found);
    std::vector<Translation> translations;
    for (std::string& text : paragraphs.join(found))
      translations.emplace_back().text = std::move(text);
    return translations;
  }

  TranslateCommand& command_;
  const Translator& translator_;
  std::string language_;  // that sentences are cut by
  WholeFile out_;
  std::vector<InputLine> lines_;
  LineWarnings repaired_{"lines that are not UTF-8"};
  int64_t id_ = 0;
  int64_t sentences_ = 0;  // of this file so far
};

void translate_files(const TranslateCommand& c, Stream& stream) {
  const std::vector<std::string> inputs =
      c.inputs.empty() ? std::vector<std::string>{"-"} : c.inputs;
  for (const std::string& input : inputs) {
    const bool typed = input == "-" && isatty(STDIN_FILENO);
    if (typed) log_info("type a sentence per line; Ctrl-D ends");
    const auto chunk = static_cast<size_t>(typed ? 1 : c.chunk);
    LineReader reader = LineReader::once(input);
    stream.run(reader.name(), chunk, [&](std::string& line) {
      Line read;
      if (!reader.next(read)) return false;
      line = read.text;
      if (read.cut && c.splits())  // else the model takes less anyway, and the translator says so
        log_warning("{}: longer than a megabyte: the rest was cut off; split the line",
                    reader.where());
      return true;
    });
  }
}

void translate(TranslateCommand& c) {
  if (c.sample) c.options.search.sampling = c.sampler;
  check_usage(c);
  c.options.search.check();
  const std::vector<Package> packages = load_models(c.model);
  const PrecisionScope precision(c.model.numbers());

  c.options.search.prefix = packages.front().target.encode(clean_line(c.prefix).text);

  std::optional<Progress> progress;
  if (!c.inputs.empty() && c.output != "-")
    progress.emplace("translating", 0, ProgressOptions{c.splits() ? "sentences" : "lines"});
  c.options.progress = [&](int64_t done) {
    if (progress) progress->set(c.written + done);
    return true;
  };
  const Translator translator(models_of(packages), packages.front().source, packages.front().target,
                              c.options);
  const auto languages = languages_of_model(packages.front().directory);
  Stream stream(c, translator, languages ? languages->first : "");
  if (c.texts.empty()) {
    translate_files(c, stream);
  } else {
    size_t at = 0;
    stream.run("argument", c.texts.size(), [&](std::string& line) {
      if (at == c.texts.size()) return false;
      line = c.texts[at++];
      return true;
    });
  }
  stream.close();
}

void add_search_options(Command& command, TranslateCommand& c) {
  SearchOptions& s = c.options.search;
  Command group = command.group("Search");
  group.option("-b,--beam", s.beam, "Hypotheses kept at each step; 1 is greedy search")
      .with_default();
  group.option("-n,--n-best", s.n_best, "Translations of each line, best first").with_default();
  group.option("--length-penalty", s.length_penalty, "A: score = log-probability / length^A")
      .with_default();
  group
      .option("--coverage-penalty", s.coverage_penalty,
              "Weight of the penalty for source words left unattended")
      .with_default();
  group
      .option("--max-length-factor", s.max_length_factor,
              "At most this many pieces per source piece, and ten more")
      .with_default();
  group.option("--max-length", s.max_length, "At most this many pieces; 0: the model's limit")
      .with_default();
  group.option("--prefix", c.prefix, "Every translation begins with this text").takes("TEXT");
  group.flag("--allow-unk", s.allow_unknown, "May write the unknown word (⁇)");

  Command sampling = command.group("Sampling");
  Option sample = sampling.flag("--sample", c.sample, "Draw words instead of searching");
  sampling.option("--temperature", c.sampler.temperature, "Below 1 safer, above 1 wilder")
      .needs(sample)
      .with_default();
  sampling.option("--top-k", c.sampler.top_k, "Draw from the k most probable words; 0: all")
      .needs(sample)
      .with_default();
  sampling.option("--top-p", c.sampler.top_p, "Draw from the words that make up this probability")
      .needs(sample)
      .with_default();
  sampling.option("--seed", c.sampler.seed, "The same seed draws the same words")
      .needs(sample)
      .with_default();
}

}  // namespace

void add_translate(Command& program) {
  Command command = program.command("translate", "Translate text: arguments, files or a pipe");
  auto shared = std::make_shared<TranslateCommand>();
  TranslateCommand& c = *shared;
  command.option("text", c.texts, "Texts to translate; none: -i files, else standard input")
      .takes("TEXT");
  command.option("-i,--input", c.inputs, "Files, one sentence per line (.gz, - for stdin)")
      .takes("FILE");
  Option split = command.flag("--split", c.split,
                              "Lines may hold several sentences: translate each, join them again");
  command.flag("--no-split", c.no_split, "Texts given as arguments are translated whole")
      .excludes(split);
  command.option("-o,--output", c.output, "File to write (.gz, - for stdout)").takes("FILE");
  command.option("-f,--format", c.format, "How to write it")
      .among({"text", "jsonl", "marian", "fairseq"})
      .with_default();
  command
      .option("--input-format", c.input_format,
              "jsonl: objects with \"source\"; their other keys are passed through")
      .among({"text", "jsonl"})
      .with_default();
  command.flag("--alignment", c.options.alignment,
               "Word alignment 0-0 1-2 (source-target), from the mean cross attention");
  command.flag("--attention", c.options.attention, "All attention matrices (jsonl)");
  command.option("--batch-tokens", c.options.batch_tokens, "Source pieces computed together")
      .within(1, 1 << 20)
      .with_default();
  command.option("--batch-sentences", c.options.batch_sentences, "And at most this many lines")
      .within(1, 1 << 20)
      .with_default();
  command.option("--chunk", c.chunk, "Lines read before the first is written")
      .within(1, 1 << 20)
      .with_default();
  add_search_options(command, c);
  add_model_options(command, c.model, Takes::ensemble);
  command.footer(kExamples);
  command.runs([shared] { translate(*shared); });
}

}  // namespace fovea

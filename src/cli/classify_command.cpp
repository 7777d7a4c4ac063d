#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_output.h"
#include "base/lines.h"
#include "base/log.h"
#include "cli/classification_format.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/model_options.h"

namespace fovea {
namespace {

constexpr const char* kExamples = R"(Examples:
  Label a question with the type of its answer, and show the attention weights of its words:
    fovea train -c recipes/trec.yml -o trec --data DIR
    fovea classify -m trec --show "How far is it from Denver to Aspen ?"

  Answer a question about a text, using a model trained with task: read:
    fovea classify -m babi1 --question "Where is Mary?" "Mary went home. John moved to the office."

  A file, one text per line (document TAB question for task: read), as JSON:
    fovea classify -m trec -i questions.txt --format jsonl

  The accuracy on a test set (in the last line on standard error):
    fovea classify -m trec -i TREC.test.all --input-format label-first -o labels.txt

Each text gives one line: label, probability, and the words with the largest attention weights,
separated by tabs; an empty text gives an empty line. --show writes all words of the text instead,
each coloured by its weight. Attention shows where the model looks, not why it decides.)";

constexpr size_t kChunk = 1024;

struct ClassifyCommand {
  ModelChoice model;
  std::vector<std::string> texts, inputs;
  std::string question, output = "-", format = "text", input_format = "text";
  bool show = false;
};

// A writer of results. It classifies items in chunks and counts correct labels.
class Output {
 public:
  Output(const ClassifyCommand& c, const Classifier& classifier)
      : c_(c), classifier_(classifier), out_(c.output) {
    const bool terminal = c.output == "-" && isatty(STDOUT_FILENO);
    shades_ = terminal_options([](const char* name) { return std::getenv(name); }, terminal);
  }

  void add(ClassificationItem item) {
    items_.push_back(std::move(item));
    if (items_.size() >= kChunk) flush();
  }

  void flush() {
    std::vector<ClassificationInput> inputs;
    for (const ClassificationItem& item : items_) inputs.push_back(item.input);
    const std::vector<ClassificationResult> results = classifier_.classify(inputs);
    for (size_t i = 0; i < items_.size(); ++i) write(items_[i], results[i]);
    out_.flush();
    items_.clear();
  }

  void close() {
    flush();
    out_.close();
    if (labelled_ > 0)
      log_info("accuracy {:.2f} %: {} of {} correct",
               100.0 * static_cast<double>(correct_) / static_cast<double>(labelled_),
               with_commas(correct_), with_commas(labelled_));
  }

 private:
  void write(const ClassificationItem& item, const ClassificationResult& result) {
    if (result.cut)
      cut_.add("{}: longer than the model accepts; the text was truncated", item.where);
    if (!item.gold.empty()) {
      ++labelled_;
      correct_ += item.gold == result.label;
    }
    out_.write(c_.format == "jsonl" ? classification_json(item, result, classifier_.asked(), id_)
                                    : classification_text(result, c_.show ? &shades_ : nullptr));
    ++id_;
  }

  const ClassifyCommand& c_;
  const Classifier& classifier_;
  WholeFile out_;
  TerminalOptions shades_;
  std::vector<ClassificationItem> items_;
  int64_t id_ = 0, labelled_ = 0, correct_ = 0;
  LineWarnings cut_{"truncated lines"};
};

void classify_examples(const ClassifyCommand& c, const Classifier& classifier, Output& out) {
  ExampleFormat format = ExampleFormat::tabs;
  if (c.input_format == "label-first") format = ExampleFormat::label_first;
  if (c.input_format == "babi") format = ExampleFormat::babi;
  for_examples({c.inputs, format, classifier.asked()},
               [&](const LabelledExample& example, const ExampleReader& reader) {
                 out.add({{example.text, example.question}, example.label, reader.where()});
               });
}

void classify_lines(const ClassifyCommand& c, const Classifier& classifier, Output& out) {
  for (const std::string& input : c.inputs) {
    const bool typed = input == "-" && isatty(STDIN_FILENO);
    const QuestionRule rule{classifier.asked(), c.question};
    if (typed) log_info("type one text per line; Ctrl-D ends the input");
    LineReader reader = LineReader::once(input);
    for (TextLine line; reader.next(line);) {
      const std::string text(line.text);
      out.add(c.input_format == "jsonl" ? parse_json_item(text, rule, reader.where())
                                        : parse_text_item(text, rule, reader.where()));
      if (typed) out.flush();
    }
  }
}

void check_usage(const ClassifyCommand& c) {
  check(c.model.directories.size() == 1, ExitCode::usage, "give one model with -m DIR; to make ",
        "one, use 'fovea train' with, for example, recipes/trec.yml, sst2.yml or babi1.yml");
  check(c.texts.empty() || c.inputs.empty(), ExitCode::usage, "give texts or -i files, not both");
  check(c.texts.empty() || c.input_format == "text", ExitCode::usage, "--input-format ",
        c.input_format, " applies to files; give them with -i");
  check(!c.show || c.format == "text", ExitCode::usage,
        "--show writes colours and requires --format text");
  for (const std::string& input : c.inputs) check_not_overwritten(input, c.output);
}

void classify(ClassifyCommand c) {
  check_usage(c);
  const ModelBundle bundle =
      load_package(model_directory(c.model.directories.front()), device_of(c.model));
  const Classifier classifier(bundle);
  check(c.question.empty() || classifier.asked() == LabelKind::answer, ExitCode::usage,
        "--question: this model labels texts and accepts no question; omit it");
  check(c.input_format != "babi" || classifier.asked() == LabelKind::answer, ExitCode::usage,
        "--input-format babi: this model labels texts and accepts no questions");
  check(c.input_format != "label-first" || classifier.asked() == LabelKind::label, ExitCode::usage,
        "--input-format label-first has no column for the question; use tabs or babi");
  const PrecisionScope precision(c.model.matmul_precision());
  Output out(c, classifier);
  if (c.texts.empty() && c.inputs.empty()) c.inputs = {"-"};
  for (size_t i = 0; i < c.texts.size(); ++i)
    out.add(parse_text_item(c.texts[i], {classifier.asked(), c.question},
                            fmt::format("argument:{}", i + 1)));
  if (c.input_format == "text" || c.input_format == "jsonl")
    classify_lines(c, classifier, out);
  else
    classify_examples(c, classifier, out);
  out.close();
}

}  // namespace

void add_classify(Command& program) {
  Command command = program.command(
      "classify", "Label texts or answer questions, and show the attention weights");
  auto c = std::make_shared<ClassifyCommand>();
  command.option("text", c->texts, "Texts; default: -i files, else standard input").takes("TEXT");
  command.option("--question", c->question, "Question to answer from every text").takes("TEXT");
  command.option("-i,--input", c->inputs, "Files, one text per line (.gz, - for stdin)")
      .takes("FILE");
  command.option("-o,--output", c->output, "File to write (.gz, - for stdout)").takes("FILE");
  command.option("-f,--format", c->format, "Output format").among({"text", "jsonl"}).with_default();
  command
      .option("--input-format", c->input_format,
              "Input format: lines of text, JSON objects with \"text\", or examples with labels")
      .among({"text", "jsonl", "label-first", "tabs", "babi"})
      .with_default();
  command.flag("--show", c->show, "Write all words, coloured by attention weight");
  add_model_options(command, c->model, ModelCount::one_that_labels);
  command.footer(kExamples);
  command.runs([c] { classify(*c); });
}

}  // namespace fovea

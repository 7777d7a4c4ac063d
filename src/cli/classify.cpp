#include "cli/classify.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "base/lines.h"
#include "base/log.h"
#include "base/utf8.h"
#include "cli/options.h"
#include "cli/session.h"
#include "cli/translation_format.h"
#include "cli/whole_file.h"
#include "decode/classifier.h"
#include "view/terminal.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples = R"(Examples:
  Classify a question by the type of its answer, and show the words that were attended to:
    fovea train -c recipes/trec.yml -o trec --data DIR
    fovea classify -m trec --show "How far is it from Denver to Aspen ?"

  Answer a question about a text, with a model trained with task: read:
    fovea classify -m babi1 --question "Where is Mary?" "Mary went home. John moved to the office."

  A file, one text per line (document TAB question for task: read), as JSON:
    fovea classify -m trec -i questions.txt --format jsonl

  The accuracy on a test set (the last line on standard error):
    fovea classify -m trec -i TREC.test.all --input-format label-first -o labels.txt

Each text gives one line: label, probability, and the words with the largest attention weights,
separated by tabs; an empty text gives an empty line. --show writes all words of the text instead,
each in the colour of its weight. Attention shows where the model looked, not why it decided.)";

constexpr size_t kChunk = 1024;
constexpr size_t kNamed = 3;  // words in a line of text
constexpr float kWorthNaming = 0.05f;

struct ClassifyCommand {
  ModelChoice model;
  std::vector<std::string> texts, inputs;
  std::string question, output = "-", format = "text", input_format = "text";
  bool show = false;
};

// One text to be read, and what came with it.
struct Item {
  Asking asking;
  std::string gold = {};  // the right label, where the input has it
  std::string where = {};
  Json fields = nullptr;
};

class Output {
 public:
  Output(const ClassifyCommand& c, const Classifier& classifier)
      : c_(c), classifier_(classifier), out_(c.output) {
    const bool terminal = c.output == "-" && isatty(STDOUT_FILENO);
    shades_ = terminal_options([](const char* name) { return std::getenv(name); }, terminal);
  }

  void add(Item item) {
    items_.push_back(std::move(item));
    if (items_.size() >= kChunk) flush();
  }

  void flush() {
    std::vector<Asking> asked;
    for (const Item& item : items_) asked.push_back(item.asking);
    const std::vector<Classified> results = classifier_.classify(asked);
    for (size_t i = 0; i < items_.size(); ++i) write(items_[i], results[i]);
    out_.flush();
    items_.clear();
  }

  void close() {
    flush();
    out_.close();
    if (golds_ > 0)
      log_info("accuracy {:.2f} %: {} of {} correct",
               100.0 * static_cast<double>(right_) / static_cast<double>(golds_),
               with_commas(right_), with_commas(golds_));
  }

 private:
  void write(const Item& item, const Classified& result) {
    if (result.cut)
      cut_.add("{}: longer than the model accepts; the text was truncated", item.where);
    if (!item.gold.empty()) {
      ++golds_;
      right_ += item.gold == result.label;
    }
    out_.write(c_.format == "jsonl" ? as_json(item, result) : as_text(result));
    ++id_;
  }

  std::string as_text(const Classified& result) const {
    if (result.label.empty()) return "\n";
    std::string line = fmt::format("{}\t{:.4f}", result.label, result.probability);
    if (!result.weights.empty()) line += "\t" + (c_.show ? shown(result) : named(result));
    return line + "\n";
  }

  std::string shown(const Classified& result) const {
    return shaded_words({result.words, {result.label}, result.weights}, 0, shades_);
  }

  // "aspen .61, far .30"
  static std::string named(const Classified& result) {
    std::vector<size_t> order(result.words.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(
        order, [&](size_t a, size_t b) { return result.weights[a] > result.weights[b]; });
    std::string list;
    for (size_t k = 0; k < std::min(kNamed, order.size()); ++k) {
      const float weight = result.weights[order[k]];
      if (k > 0 && weight < kWorthNaming) break;
      list += fmt::format("{}{} {}", k > 0 ? ", " : "", printable(result.words[order[k]]),
                          short_weight(weight));
    }
    return list;
  }

  std::string as_json(const Item& item, const Classified& result) const {
    Json object = item.fields.is_object() ? item.fields : Json::object();
    if (!object.contains("id")) object["id"] = id_;
    object["text"] = replace_invalid_utf8(item.asking.text);
    if (classifier_.asked() == Asked::answer)
      object["question"] = replace_invalid_utf8(item.asking.question);
    if (!item.gold.empty()) object["gold"] = item.gold;
    object["label"] = result.label;
    object["probability"] = rounded(result.probability);
    object["labels"] = Json::object();
    for (const auto& [label, probability] : result.labels)
      object["labels"][label] = rounded(probability);
    object["words"] = result.words;
    object["weights"] = Json::array();
    for (const float weight : result.weights) object["weights"].push_back(rounded(weight, 1e4));
    return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  const ClassifyCommand& c_;
  const Classifier& classifier_;
  WholeFile out_;
  TerminalOptions shades_;
  std::vector<Item> items_;
  int64_t id_ = 0, golds_ = 0, right_ = 0;
  LineWarnings cut_{"truncated lines"};
};

// A line of text, with the question after a tab where the model wants one and none was given.
Item from_line(const std::string& line, const ClassifyCommand& c, const Classifier& classifier,
               const std::string& where) {
  Item item{{line, c.question}};
  item.where = where;
  if (classifier.asked() == Asked::label || !c.question.empty()) return item;
  if (line.find_first_not_of(" \t") == line.npos) return item;
  const size_t tabs = static_cast<size_t>(std::ranges::count(line, '\t'));
  check(tabs == 1, Exit::data, where,
        ": expected 2 columns, document and question, separated by a ", "tab; found ", tabs + 1,
        "; or give one question for all texts with --question");
  item.asking = {line.substr(0, line.find('\t')), line.substr(line.find('\t') + 1)};
  return item;
}

Item from_json(const std::string& line, const ClassifyCommand& c, const Classifier& classifier,
               const std::string& where) {
  const InputLine parsed = parse_json_line(line, 0, where);
  Item item{{parsed.text, c.question}};
  item.where = where;
  item.fields = parsed.fields;
  if (classifier.asked() == Asked::label || !c.question.empty()) return item;
  const bool there = parsed.fields.contains("question") && parsed.fields["question"].is_string();
  check(there, Exit::data, where, ": expected the key \"question\"; or give the question with ",
        "--question");
  item.asking.question = parsed.fields["question"];
  return item;
}

void classify_examples(const ClassifyCommand& c, const Classifier& classifier, Output& out) {
  ExampleFormat format = ExampleFormat::tabs;
  if (c.input_format == "label-first") format = ExampleFormat::label_first;
  if (c.input_format == "babi") format = ExampleFormat::babi;
  for_examples({c.inputs, format, classifier.asked()},
               [&](const Example& example, const ExampleReader& reader) {
                 out.add({{example.text, example.question}, example.label, reader.where()});
               });
}

void classify_lines(const ClassifyCommand& c, const Classifier& classifier, Output& out) {
  for (const std::string& input : c.inputs) {
    const bool typed = input == "-" && isatty(STDIN_FILENO);
    if (typed) log_info("type one text per line; Ctrl-D ends the input");
    LineReader reader = LineReader::once(input);
    for (Line line; reader.next(line);) {
      const std::string text(line.text);
      out.add(c.input_format == "jsonl" ? from_json(text, c, classifier, reader.where())
                                        : from_line(text, c, classifier, reader.where()));
      if (typed) out.flush();
    }
  }
}

void check_usage(const ClassifyCommand& c) {
  check(c.model.directories.size() == 1, Exit::usage, "name one model with -m DIR; train one ",
        "with 'fovea train', for example with recipes/trec.yml, sst2.yml or babi1.yml");
  check(c.texts.empty() || c.inputs.empty(), Exit::usage, "give texts or -i files, not both");
  check(c.texts.empty() || c.input_format == "text", Exit::usage, "--input-format ", c.input_format,
        " applies to files; name them with -i");
  check(!c.show || c.format == "text", Exit::usage,
        "--show writes colours, which needs --format text");
  for (const std::string& input : c.inputs) check_not_overwritten(input, c.output);
}

void classify(ClassifyCommand c) {
  check_usage(c);
  const Package package =
      load_package(model_directory(c.model.directories.front()), device_of(c.model));
  const Classifier classifier(package);
  check(c.question.empty() || classifier.asked() == Asked::answer, Exit::usage,
        "--question: this model labels texts and accepts no question; omit it");
  check(c.input_format != "babi" || classifier.asked() == Asked::answer, Exit::usage,
        "--input-format babi: this model labels texts and accepts no questions");
  check(c.input_format != "label-first" || classifier.asked() == Asked::label, Exit::usage,
        "--input-format label-first has no column for the question; use tabs or babi");
  const PrecisionScope precision(c.model.numbers());
  Output out(c, classifier);
  if (c.texts.empty() && c.inputs.empty()) c.inputs = {"-"};
  for (size_t i = 0; i < c.texts.size(); ++i)
    out.add(from_line(c.texts[i], c, classifier, fmt::format("argument:{}", i + 1)));
  if (c.input_format == "text" || c.input_format == "jsonl")
    classify_lines(c, classifier, out);
  else
    classify_examples(c, classifier, out);
  out.close();
}

}  // namespace

void add_classify(Command& program) {
  Command command = program.command(
      "classify", "Label texts or answer questions, and show what the model attended to");
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
  command.flag("--show", c->show, "Write all words, coloured by their attention weights");
  add_model_options(command, c->model, Takes::one_that_labels);
  command.footer(kExamples);
  command.runs([c] { classify(*c); });
}

}  // namespace fovea

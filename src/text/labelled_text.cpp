#include "text/labelled_text.h"

#include <charconv>

#include "base/ascii.h"
#include "base/check.h"
#include "base/utf8.h"
#include "text/tokenization.h"

namespace fovea {
namespace {

std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> columns;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find('\t', at), line.size());
    columns.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return columns;
}

bool is_blank(const std::string& text) { return split_words(text).empty(); }

// A list of the first 12 labels for messages, such as "0, 1, 2 and 3 more".
std::string label_list(const Vocabulary& labels) {
  constexpr int32_t kShown = 12;
  std::string list;
  for (int32_t id = kSpecials; id < std::min(labels.size(), kSpecials + kShown); ++id)
    list += (list.empty() ? "" : ", ") + printable(labels.name(id));
  const int32_t more = labels.size() - kSpecials - kShown;
  return more > 0 ? list + " and " + std::to_string(more) + " more" : list;
}

}  // namespace

ExampleReader::ExampleReader(const std::string& path, ExampleFormat format, LabelKind kind)
    : reader_(path), format_(format), kind_(kind) {}

bool ExampleReader::next_line(std::string& line) {
  for (TextLine read; reader_.next(read);) {
    const size_t bad = find_invalid_utf8(read.text);
    check(bad == std::string::npos, ExitCode::data, where(), ": byte ", bad + 1,
          " of the line is not UTF-8; convert the file");
    line = read.text;
    if (!is_blank(line)) return true;
  }
  return false;
}

bool ExampleReader::next(LabelledExample& example) {
  for (std::string line; next_line(line);) {
    example = {};
    example.line = reader_.counts().lines;
    example.story = example.line;
    if (format_ == ExampleFormat::babi) {
      if (read_babi(line, example)) return true;
      continue;
    }
    if (format_ == ExampleFormat::label_first)
      read_label_first(line, example);
    else
      read_tabs(line, example);
    return true;
  }
  return false;
}

std::string ExampleReader::one_word(const std::string& text, const char* what) const {
  const auto words = split_words(text);
  check(!words.empty(), ExitCode::data, where(), ": the ", what, " is missing; add it");
  check(words.size() == 1, ExitCode::data, where(), ": expected a ", what, " of one word, found '",
        printable(text), "'; join its words");
  return std::string(words.front());
}

void ExampleReader::read_label_first(const std::string& line, LabelledExample& example) const {
  const auto words = split_words(line);
  check(words.size() > 1, ExitCode::data, where(),
        ": expected a label and the words of a text, found only ", "'", printable(line), "'");
  example.label = words.front();
  example.text = line.substr(static_cast<size_t>(words[1].data() - line.data()));
}

void ExampleReader::read_tabs(const std::string& line, LabelledExample& example) const {
  const std::vector<std::string> columns = columns_of(line);
  const bool label = kind_ == LabelKind::label;
  check(columns.size() == (label ? 2u : 3u), ExitCode::data, where(), ": expected ",
        label ? "2 columns, text and label" : "3 columns, document, question and answer",
        ", separated by tabs, found ", columns.size(), "; correct the line");
  example.text = columns.front();
  if (!label) example.question = columns[1];
  example.label = one_word(columns.back(), label ? "label" : "answer");
}

// Reads a line of format babi. Returns whether the line is a question and `example` is complete.
bool ExampleReader::read_babi(const std::string& line, LabelledExample& example) {
  const char* const last = line.data() + line.size();
  int64_t number = 0;
  const auto parsed = std::from_chars(line.data(), last, number);
  const bool numbered = parsed.ec == std::errc() && parsed.ptr != last && *parsed.ptr == ' ';
  check(numbered && (number == 1 || (number_ > 0 && number == number_ + 1)), ExitCode::data,
        where(), ": expected a line that begins with ",
        number_ > 0 ? std::to_string(number_ + 1) + " or " : "", "1 and a blank, found '",
        printable(line), "'");
  if (number == 1) {
    story_.clear();
    ++stories_;
  }
  number_ = number;
  const std::vector<std::string> columns = columns_of(std::string(parsed.ptr + 1, last));
  if (columns.size() == 1) {
    story_ += (story_.empty() ? "" : " ") + columns.front();
    return false;
  }
  check(columns.size() == 3, ExitCode::data, where(),
        ": expected a sentence, or 3 columns, question, ",
        "answer and supporting sentences, separated by tabs; found ", columns.size(), " columns");
  example.text = story_;
  example.question = columns[0];
  example.label = one_word(columns[1], "answer");
  example.story = stories_;
  return true;
}

std::vector<std::string> sentences_of(const std::string& text) {
  constexpr std::string_view kEnds = ".!?";
  std::vector<std::string> sentences;
  const char* begin = text.data();
  for (const std::string_view word : split_words(text)) {
    if (kEnds.find(word.back()) == kEnds.npos) continue;
    sentences.emplace_back(begin, word.data() + word.size());
    begin = word.data() + word.size();
  }
  std::string rest(begin, text.data() + text.size());
  if (sentences.empty() || !is_blank(rest)) sentences.push_back(std::move(rest));
  return sentences;
}

std::vector<int32_t> encode_example(const Vocabulary& words, const std::string& text,
                                    const std::string& question, LabelKind kind) {
  if (kind == LabelKind::label) return words.encode(text);
  std::vector<int32_t> ids;
  for (const std::string& sentence : sentences_of(text)) {
    const std::vector<int32_t> more = words.encode(sentence);
    ids.insert(ids.end(), more.begin(), more.end());
    ids.push_back(kEos);
  }
  const std::vector<int32_t> more = words.encode(question);
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

void for_examples(const ExampleFiles& files,
                  const std::function<void(const LabelledExample&, const ExampleReader&)>& each) {
  for (const std::string& path : files.paths) {
    ExampleReader reader(path, files.format, files.asked);
    for (LabelledExample example; reader.next(example);)
      if (files.share.includes(example.story)) each(example, reader);
  }
}

Corpus read_examples(const ExampleFiles& files, const Vocabulary& words, const Vocabulary& labels,
                     int64_t longest) {
  Corpus corpus(TargetKind::labels);
  CorpusCounts counts;
  for_examples(files, [&](const LabelledExample& example, const ExampleReader& reader) {
    ++counts.read;
    const int32_t label = labels.id(example.label);
    check(label >= kSpecials, ExitCode::data, reader.where(), ": the label '",
          printable(example.label), "' does not occur in the training text, expected one of ",
          label_list(labels), "; correct the label or remove the line");
    const auto ids = encode_example(words, example.text, example.question, files.asked);
    if (ids.empty()) {
      ++counts.empty;
    } else if (std::ssize(ids) > longest) {
      if (counts.too_long++ == 0) counts.first_too_long = reader.where();
    } else {
      ++counts.kept;
      corpus.add(ids, std::vector{label}, counts.read);
    }
  });
  corpus.account(counts);
  return corpus;
}

}  // namespace fovea

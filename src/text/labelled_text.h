#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/lines.h"
#include "text/corpus.h"
#include "text/vocabulary.h"

namespace fovea {

// The task of an example: find the label of a text, or answer a question about a text with one
// word.
enum class LabelKind { label, answer };

// The format of a file of examples:
//   label_first  LABEL and the words of the text, separated by blanks (TREC, SST)
//   tabs         text TAB label, or document TAB question TAB answer
//   babi         numbered sentences; number 1 starts a new story. A question is a line with TAB
//                answer TAB numbers of the supporting sentences. Its document has all earlier
//                sentences of the story (Weston et al. 2015).
enum class ExampleFormat { label_first, tabs, babi };

// A text with a label, or a text with a question and its answer.
struct LabelledExample {
  std::string text, question;  // question: only for LabelKind::answer
  std::string label;           // the label, or the answer
  int64_t line = 0;            // in its file, counted from 1
  int64_t story = 0;           // from 1 in each file; babi only, else equal to `line`
};

// A reader of the examples of one file. Throws ExitCode::data with file and line if a label is
// missing or has several words, if the number of columns is wrong, or if the sentences of a story
// are not numbered in order.
class ExampleReader {
 public:
  ExampleReader(const std::string& path, ExampleFormat format, LabelKind kind);

  bool next(LabelledExample& example);
  std::string where() const { return reader_.where(); }
  const LineCounts& counts() const { return reader_.counts(); }

 private:
  bool next_line(std::string& line);
  void read_label_first(const std::string& line, LabelledExample& example) const;
  void read_tabs(const std::string& line, LabelledExample& example) const;
  bool read_babi(const std::string& line, LabelledExample& example);
  std::string one_word(const std::string& text, const char* what) const;

  LineReader reader_;
  ExampleFormat format_;
  LabelKind kind_;
  std::string story_;
  int64_t stories_ = 0, number_ = 0;
};

// Splits a text into sentences: a sentence ends with a word that ends in ".", "!" or "?". Returns
// at least one sentence, which may be empty.
std::vector<std::string> sentences_of(const std::string& text);

// Encodes a text; for LabelKind::answer, encodes the sentences of the document and then the
// question, with </s> between them. No text encodes to </s>, so that the separators are
// unambiguous. The result does not have the final </s> of a source sentence.
std::vector<int32_t> encode_example(const Vocabulary& words, const std::string& text,
                                    const std::string& question, LabelKind kind);

// The stories whose examples are used: all, every n-th story, or all but every n-th.
struct StorySelection {
  enum class Part { all, every_nth, all_but_every_nth } part = Part::all;
  int64_t n = 0;

  bool includes(int64_t story) const {
    return part == Part::all || (story % n == 0) == (part == Part::every_nth);
  }
};

// Files of examples and how to read them.
struct ExampleFiles {
  std::vector<std::string> paths;
  ExampleFormat format = ExampleFormat::label_first;
  LabelKind asked = LabelKind::label;
  StorySelection share = {};
};

// Calls `each` with every selected example and its reader, which gives the location for messages.
void for_examples(const ExampleFiles& files,
                  const std::function<void(const LabelledExample&, const ExampleReader&)>& each);

// Reads examples as pairs of text and label. Skips and counts texts that have no pieces or more
// than `longest` pieces. Throws ExitCode::data for a label that is not in `labels`.
Corpus read_examples(const ExampleFiles& files, const Vocabulary& words, const Vocabulary& labels,
                     int64_t longest);

}  // namespace fovea

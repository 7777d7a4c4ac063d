#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/lines.h"
#include "text/corpus.h"
#include "text/vocabulary.h"

namespace fovea {

// What an example asks of a model: the label of a text, or an answer of one word to a question
// about it.
enum class Asked { label, answer };

// How files hold examples:
//   label_first  LABEL and the words of the text, separated by blanks (TREC, SST)
//   tabs         text TAB label, or document TAB question TAB answer
//   babi         numbered sentences, a new story where they begin at 1 again; a question is a line
//                with TAB answer TAB the numbers of the sentences it follows from. Its document is
//                all that the story has said so far (Weston et al. 2015).
enum class ExampleFormat { label_first, tabs, babi };

struct Example {
  std::string text, question;  // question: Asked::answer only
  std::string label;           // the label, or the answer
  int64_t line = 0;            // from 1, in its file
  int64_t story = 0;           // examples that share text have the same; from 1, in its file
};

// Reads the examples of one file. Errors are Exit::data and name file and line: a line without
// label, a label of several words, too few or too many columns, a story that does not count.
class ExampleReader {
 public:
  ExampleReader(const std::string& path, ExampleFormat format, Asked asked);

  bool next(Example& example);
  std::string where() const { return reader_.where(); }
  const LineCounts& counts() const { return reader_.counts(); }

 private:
  bool next_line(std::string& line);
  void read_label_first(const std::string& line, Example& example) const;
  void read_tabs(const std::string& line, Example& example) const;
  bool read_babi(const std::string& line, Example& example);
  std::string one_word(const std::string& text, const char* what) const;

  LineReader reader_;
  ExampleFormat format_;
  Asked asked_;
  std::string story_;
  int64_t stories_ = 0, number_ = 0;
};

// The sentences of a text: each ends with a word that ends in ".", "!" or "?". At least one, which
// may be empty.
std::vector<std::string> sentences_of(const std::string& text);

// A text as pieces; or the sentences of a document and then its question, with </s> between them,
// which no text contains. As the source of a pair, </s> follows.
std::vector<int32_t> encode_example(const Vocabulary& words, const std::string& text,
                                    const std::string& question, Asked asked);

// Which examples of the files to take: all, or those of every n-th story, or all but these.
struct Share {
  enum class Part { all, every_nth, all_but_every_nth } part = Part::all;
  int64_t n = 0;

  bool takes(int64_t story) const {
    return part == Part::all || (story % n == 0) == (part == Part::every_nth);
  }
};

struct ExampleFiles {
  std::vector<std::string> paths;
  ExampleFormat format = ExampleFormat::label_first;
  Asked asked = Asked::label;
  Share share = {};
};

void for_examples(const ExampleFiles& files,
                  const std::function<void(const Example&, const ExampleReader&)>& each);

// The examples as pairs of text and label. Texts without pieces and longer than `longest` are left
// out and counted. Exit::data for a label that `labels` does not know.
Corpus read_examples(const ExampleFiles& files, const Vocabulary& words, const Vocabulary& labels,
                     int64_t longest);

}  // namespace fovea

#include "document/document.h"

#include <algorithm>

#include "text/sentence_gap.h"
#include "text/sentences.h"

namespace fovea {
namespace {

class PlainTextDocument : public TextDocument {
 public:
  PlainTextDocument(const std::string& text, const PassageOptions& options)
      : target_(options.target) {
    for (const TextSpan& stretch : split_sentences(text, options.source, options.limit)) {
      if (stretch.is_sentence) {
        sentences_.emplace_back(stretch.text);
        between_.emplace_back();
      } else {
        between_.back() += stretch.text;
      }
    }
  }

  std::string render(std::span<const Translation> translations, size_t nth) const override {
    std::string text, last;
    for (size_t i = 0; i < sentences_.size(); ++i) {
      const Alternative* best = nth_best(translations[i], nth);
      text += gap(i, last, best ? best->text : "");
      last = best ? best->text : "";
      text += last;
    }
    return text + between_.back();
  }

  std::string before(size_t sentence) const override { return gap(sentence, "", ""); }

 private:
  // Returns the text before the translation of sentence i. The text before the first sentence is
  // copied unchanged.
  std::string gap(size_t i, std::string_view left, std::string_view right) const {
    if (i == 0) return between_.front();
    return translated_gap({.text = between_[i],
                           .source_before = sentences_[i - 1],
                           .source_after = sentences_[i],
                           .before = left,
                           .after = right},
                          target_);
  }

  std::vector<std::string> between_{""};  // text before the first sentence and after each one
  std::string target_;
};

}  // namespace

const Alternative* nth_best(const Translation& translation, size_t nth) {
  const auto& all = translation.n_best;
  return all.empty() ? nullptr : &all[std::min(nth, all.size() - 1)];
}

std::unique_ptr<TextDocument> plain_document(const std::string& text,
                                             const PassageOptions& options) {
  return std::make_unique<PlainTextDocument>(text, options);
}

}  // namespace fovea

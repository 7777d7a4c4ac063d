#include "serve/passage.h"

#include <algorithm>

#include "serve/sentences.h"

namespace fovea {
namespace {

class PlainPassage : public Passage {
 public:
  PlainPassage(const std::string& text, const std::string& language) {
    for (const Stretch& stretch : split_sentences(text, language)) {
      if (stretch.is_sentence) {
        sentences_.emplace_back(stretch.text);
        between_.emplace_back();
      } else {
        between_.back() += stretch.text;
      }
    }
  }

  std::string render(std::span<const Translation> translations, size_t nth) const override {
    std::string text = between_.front();
    for (size_t i = 0; i < sentences_.size(); ++i) {
      if (const Alternative* best = nth_best(translations[i], nth)) text += best->text;
      text += between_[i + 1];
    }
    return text;
  }

 private:
  std::vector<std::string> between_{""};  // before the first sentence, after each
};

}  // namespace

const Alternative* nth_best(const Translation& translation, size_t nth) {
  const auto& all = translation.n_best;
  return all.empty() ? nullptr : &all[std::min(nth, all.size() - 1)];
}

std::unique_ptr<Passage> plain_passage(const std::string& text, const std::string& language) {
  return std::make_unique<PlainPassage>(text, language);
}

}  // namespace fovea

#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decode/package.h"
#include "text/examples.h"

namespace fovea {

// A text, and the question about it where the model answers one.
struct Asking {
  std::string text, question;
};

struct Classified {
  std::string label;  // the most probable one; empty where there was nothing to read
  double probability = 0;
  std::vector<std::pair<std::string, double>> labels;  // all, most probable first
  std::vector<std::string> words;  // of the text as written; </s> after it (after each sentence)
  std::vector<float> weights;      // how much each word was attended to; none without attention
  bool cut = false;                // the text was longer than the model reads
};

// Finds labels or answers with a model that was trained to classify or to read. The package must
// outlive it. Each text gives one result, whatever else is asked with it.
class Classifier {
 public:
  // Exit::model where the package holds another kind of model.
  explicit Classifier(const Package& package);

  Asked asked() const { return asked_; }
  std::vector<Classified> classify(std::span<const Asking> texts) const;

 private:
  std::vector<int32_t> encode(const Asking& text, bool* cut) const;
  void read(std::span<const Asking> texts, std::span<const int64_t> members,
            std::span<const std::vector<int32_t>> ids, std::span<Classified> results) const;
  void rank(std::span<const double> logits, Classified& result) const;
  void attend(const Asking& text, std::span<const int32_t> ids, const AttentionMap& map,
              Classified& result) const;

  const Package& package_;
  Asked asked_;
};

}  // namespace fovea

#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decode/model_bundle.h"
#include "models/label_predictor.h"
#include "text/labelled_text.h"

namespace fovea {

// A text to classify. If the model answers questions, `question` is a question about the text,
// otherwise it is empty.
struct ClassificationInput {
  std::string text, question;
};

struct ClassificationResult {
  std::string label;  // the most probable label; empty if the text has no words
  double probability = 0;
  std::vector<std::pair<std::string, double>> labels;  // all labels, most probable first
  std::vector<std::string>
      words;  // as in the text; </s> follows the text or, with a question, each sentence
  std::vector<float> weights;  // attention weight of each word; empty if no attention
  bool cut = false;            // true: the text was cut to the model's limit
};

// A text classifier: finds the label of a text, or the answer to a question, with a model that was
// trained for it. The bundle must outlive it. Each text has one result, which does not depend on
// the other texts.
class Classifier {
 public:
  // If the model is not a text classifier, throws ExitCode::model.
  explicit Classifier(const ModelBundle& bundle);

  LabelKind asked() const { return label_kind_; }
  std::vector<ClassificationResult> classify(std::span<const ClassificationInput> texts) const;

 private:
  std::vector<int32_t> encode(const ClassificationInput& text, bool* cut) const;
  void read(std::span<const ClassificationInput> texts, std::span<const int64_t> members,
            std::span<const std::vector<int32_t>> ids,
            std::span<ClassificationResult> results) const;
  void rank(std::span<const double> logits, ClassificationResult& result) const;
  void attend(const ClassificationInput& text, std::span<const int32_t> ids,
              std::span<const double> weights, ClassificationResult& result) const;

  const ModelBundle& bundle_;
  const LabelPredictor* network_;
  LabelKind label_kind_ = LabelKind::label;
};

}  // namespace fovea

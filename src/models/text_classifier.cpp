#include "models/text_classifier.h"

#include <algorithm>
#include <cassert>

#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/shape.h"

namespace fovea {
namespace {

constexpr int32_t kEnd = 2;
constexpr double kNoLabel = -1e9;  // log p that is reported for a target word that is not a label

// The sources of a batch, each split into a document and a question. Each sentence of a document
// ends with </s>, and each question, too.
struct DocumentsAndQuestions {
  std::vector<int32_t> document, document_offsets{0}, question, question_offsets{0};
  std::vector<int32_t> sentence_offsets{0};  // in `document`: the sentences of all documents
  std::vector<int32_t> follow;  // per word: later sentences of its document, at most kFarthest − 1

  explicit DocumentsAndQuestions(const TokenBatch& source) {
    for (int64_t b = 0; b < source.sentences(); ++b) {
      const auto ids =
          source.ids.subspan(source.offsets[b], source.offsets[b + 1] - source.offsets[b]);
      size_t cut = ids.empty() ? 0 : ids.size() - 1;  // becomes the index of the question's start
      while (cut > 0 && ids[cut - 1] != kEnd) --cut;
      check(cut > 0, ExitCode::data, "text ", b + 1, " of the batch is a document without a ",
            "question, expected both; separate them by a tab ('fovea classify')");
      add_document(ids.first(cut));
      question.insert(question.end(), ids.begin() + static_cast<std::ptrdiff_t>(cut), ids.end());
      question_offsets.push_back(static_cast<int32_t>(question.size()));
    }
  }
  void add_document(std::span<const int32_t> ids) {
    auto left = static_cast<int32_t>(std::ranges::count(ids, kEnd)) - 1;
    for (const int32_t id : ids) {
      document.push_back(id);
      follow.push_back(std::min(left, static_cast<int32_t>(TextClassifier::kFarthest) - 1));
      if (id != kEnd) continue;
      sentence_offsets.push_back(static_cast<int32_t>(document.size()));
      --left;
    }
    document_offsets.push_back(static_cast<int32_t>(document.size()));
  }
  TokenBatch documents() const { return {document, document_offsets}; }
  TokenBatch sentences() const { return {document, sentence_offsets}; }
  TokenBatch questions() const { return {question, question_offsets}; }
};

}  // namespace

TextClassifier::TextClassifier(const ModelShape& m, const ReaderConfig& c, ElementType type,
                               Device device)
    : Model(type, device, m),
      E(store_.declare_words("source/E", m.source_words, c.embedding_size(m))),
      encoder(ParameterScope{store_, "encoder"}, c.sizes(m)) {
  const int64_t D = encoder.out(), labels = m.target_words - kFirstLabel;
  const int64_t G = c.attention.attends() ? m.size : D;
  if (c.context == EncoderContext::sentence)
    P = store_.declare("encoder/P", {kFarthest, D}, ParameterInit::normal(0.1));
  if (c.attention.attends()) {
    if (c.query == ReaderQuery::question)
      question.emplace(ParameterScope{store_, "question"}, c.sizes(m));
    if (c.query == ReaderQuery::learned)
      u = store_.declare("query/u", {1, D}, ParameterInit::glorot(D, 1));
    const int64_t inner = c.attention.inner > 0 ? c.attention.inner : m.size;
    attend.emplace(ParameterScope{store_, "attend"}, ReaderAttention::Sizes{D, D, inner, G});
  }
  W_a = store_.declare("output/W", {labels, G}, ParameterInit::glorot(G, labels));
  b_a = store_.declare("output/b", {labels}, ParameterInit::constant(0));
}

TextClassifier::EncodedText TextClassifier::encode(const RecurrentStack& stack,
                                                   const TokenBatch& text) const {
  const Device device = store_.device();
  const TimeMajor order = TimeMajor::of(text.offsets, device);
  std::vector<int32_t> ids, position(order.order.size());
  for (const int32_t p : order.words) ids.push_back(text.ids[static_cast<size_t>(p)]);
  for (size_t i = 0; i < position.size(); ++i)  // position[i]: index of sentence i in order.order
    position[static_cast<size_t>(order.order[i])] = static_cast<int32_t>(i);
  const Tensor x =
      embed(E, {}, {Tensor::of(ids, device), {}, 1, dropout_key(shape_.dropout)});  // E w_j
  const RecurrentStack::Read read = stack(x, order);
  std::vector<Tensor> ends;
  for (size_t i = stack.layers.size() - static_cast<size_t>(stack.directions);
       i < stack.layers.size(); ++i)
    ends.push_back(stack.layers[i].cell.h(read.last[i]));
  const Tensor summary = ends.size() == 1 ? ends[0] : concat_columns(ends);  // [→h_S ; ←h_1]
  return {dropped(rows_at(read.h, order.to), dropout_key(shape_.dropout)),
          dropped(rows_at(summary, Tensor::of(position, device)), dropout_key(shape_.dropout))};
}

TextClassifier::Answer TextClassifier::read(const TokenBatch& source) const {
  if (!attend) return {encode(encoder, source).summary, {}};
  if (question) return read_documents(source);
  const EncodedText y = encode(encoder, source);
  const std::vector<int32_t> first(static_cast<size_t>(source.sentences()), 0);
  const Tensor query = u ? rows_at(u, Tensor::of(first, store_.device())) : y.summary;  // u
  const auto read = (*attend)(y.h, SentenceOffsets::of(source.offsets, store_.device()), query);
  return {dropped(read.g, dropout_key(shape_.dropout)), read.weights};
}

TextClassifier::Answer TextClassifier::read_documents(const TokenBatch& source) const {
  const Device device = store_.device();
  const DocumentsAndQuestions split(source);
  Tensor h = encode(encoder, P ? split.sentences() : split.documents()).h;
  if (P) h = h + rows_at(P, Tensor::of(split.follow, device));        // h_j + P_k
  const Tensor query = encode(*question, split.questions()).summary;  // u
  const auto read = (*attend)(h, SentenceOffsets::of(split.document_offsets, device), query);
  return {dropped(read.g, dropout_key(shape_.dropout)), read.weights};
}

BatchLoss TextClassifier::loss(const TrainingBatch& batch, double label_smoothing) const {
  assert(std::ssize(batch.target_out) == batch.source.sentences() && !batch.guidance);
  std::vector<int32_t> labels;
  for (const int32_t word : batch.target_out) labels.push_back(word - kFirstLabel);
  const CrossEntropy out = output_loss(read(batch.source).g, W_a, b_a,
                                       Tensor::of(labels, store_.device()), label_smoothing);
  std::vector<double> scores = out.log_likelihood.values();
  for (size_t b = 0; b < labels.size(); ++b)
    if (labels[b] < 0) scores[b] = kNoLabel;
  return {out.loss, Tensor::of({std::ssize(scores)}, scores, store_.type(), store_.device())};
}

LabelScores TextClassifier::predict_labels(const TokenBatch& texts) const {
  const Answer answer = read(texts);
  return {linear(answer.g, W_a, b_a), answer.weights};  // W_a g + b_a
}

}  // namespace fovea

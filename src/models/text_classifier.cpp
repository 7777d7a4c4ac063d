#include "models/text_classifier.h"

#include <algorithm>
#include <cmath>

#include "models/encoder_sizes.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/shape.h"

namespace fovea {
namespace {

constexpr int32_t kStart = 1, kEnd = 2, kFirstLabel = 4;
constexpr double kImpossibleLabel = -1e9;  // the logit of words that are not labels

struct State : DecoderState {
  Tensor logits;  // [rows, labels]
};

// Sources, split into the sentences of a document and a question.
struct DocumentsAndQuestions {
  std::vector<int32_t> document, document_offsets{0}, question, question_offsets{0};
  std::vector<int32_t> sentence_offsets{0};  // of all documents, into `document`
  std::vector<int32_t> follow;  // per word: the number of later sentences, at most kFarthest − 1

  explicit DocumentsAndQuestions(const TokenBatch& source) {
    for (int64_t b = 0; b < source.sentences(); ++b) {
      const auto ids =
          source.ids.subspan(source.offsets[b], source.offsets[b + 1] - source.offsets[b]);
      size_t cut = ids.empty() ? 0 : ids.size() - 1;  // the last word is the question's own </s>
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

TextClassifier::TextClassifier(const ModelConfig& c, ElementType type, Device device)
    : Model(type, device), config_(c),
      E(store_.declare(
          "source/E", {c.source_words, c.embedding_size()},
          ParameterInit::normal(1 / std::sqrt(static_cast<double>(c.embedding_size()))))),
      encoder(ParameterScope{store_, "encoder"}, encoder_sizes(c)) {
  const int64_t D = encoder.out(), labels = c.target_words - kFirstLabel;
  const int64_t G = c.attention.attends() ? c.size : D;
  if (c.context == EncoderContext::sentence)
    P = store_.declare("encoder/P", {kFarthest, D}, ParameterInit::normal(0.1));
  if (c.attention.attends()) {
    if (c.query == ReaderQuery::question)
      question.emplace(ParameterScope{store_, "question"}, encoder_sizes(c));
    if (c.query == ReaderQuery::learned)
      u = store_.declare("query/u", {1, D}, ParameterInit::glorot(D, 1));
    const int64_t inner = c.attention.inner > 0 ? c.attention.inner : c.size;
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
  for (size_t i = 0; i < position.size(); ++i)  // of each sentence in the sorted order
    position[static_cast<size_t>(order.order[i])] = static_cast<int32_t>(i);
  const Tensor x =
      embed(E, {}, {Tensor::of(ids, device), {}, 1, dropout_key(config_.dropout)});  // E w_j
  const RecurrentStack::Read read = stack(x, order);
  std::vector<Tensor> ends;
  for (size_t i = stack.layers.size() - static_cast<size_t>(stack.directions);
       i < stack.layers.size(); ++i)
    ends.push_back(stack.layers[i].cell.h(read.last[i]));
  const Tensor summary = ends.size() == 1 ? ends[0] : concat_columns(ends);  // [→h_S ; ←h_1]
  return {dropped(rows_at(read.h, order.to), dropout_key(config_.dropout)),
          dropped(rows_at(summary, Tensor::of(position, device)), dropout_key(config_.dropout))};
}

TextClassifier::Answer TextClassifier::read(const TokenBatch& source) const {
  if (!attend) return {encode(encoder, source).summary, {}};
  if (question) return read_documents(source);
  const EncodedText y = encode(encoder, source);
  const std::vector<int32_t> first(static_cast<size_t>(source.sentences()), 0);
  const Tensor query = u ? rows_at(u, Tensor::of(first, store_.device())) : y.summary;  // u
  const auto read = (*attend)(y.h, SentenceOffsets::of(source.offsets, store_.device()), query);
  return {dropped(read.g, dropout_key(config_.dropout)), read.weights};
}

TextClassifier::Answer TextClassifier::read_documents(const TokenBatch& source) const {
  const Device device = store_.device();
  const DocumentsAndQuestions split(source);
  Tensor h = encode(encoder, P ? split.sentences() : split.documents()).h;
  if (P) h = h + rows_at(P, Tensor::of(split.follow, device));        // h_j + P_k
  const Tensor query = encode(*question, split.questions()).summary;  // u
  const auto read = (*attend)(h, SentenceOffsets::of(split.document_offsets, device), query);
  return {dropped(read.g, dropout_key(config_.dropout)), read.weights};
}

BatchLoss TextClassifier::loss(const TokenBatch& source, const TokenBatch& target_in,
                               std::span<const int32_t> target_out, double label_smoothing) const {
  const auto count = static_cast<size_t>(source.sentences());
  std::vector<int32_t> labels;
  for (size_t b = 0; b < count; ++b)
    labels.push_back(target_out[static_cast<size_t>(target_in.offsets[b])] - kFirstLabel);
  const CrossEntropy out =
      output_loss(read(source).g, W_a, b_a, Tensor::of(labels, store_.device()), label_smoothing);
  const std::vector<double> scores = out.log_likelihood.values();
  std::vector<double> words(target_out.size(), 0);  // log p(</s> | label) = 0
  for (size_t b = 0; b < count; ++b)
    words[static_cast<size_t>(target_in.offsets[b])] = labels[b] < 0 ? kImpossibleLabel : scores[b];
  return {out.loss,
          Tensor::of({static_cast<int64_t>(words.size())}, words, store_.type(), store_.device())};
}

std::unique_ptr<DecoderState> TextClassifier::start(const TokenBatch& source) const {
  auto state = std::make_unique<State>();
  state->logits = linear(read(source).g, W_a, b_a);  // W_a g + b_a
  return state;
}

Tensor TextClassifier::step(DecoderState& decoder_state, std::span<const int32_t> words) const {
  const auto& state = static_cast<State&>(decoder_state);
  const std::vector<double> logits = state.logits.values();
  const auto width = static_cast<size_t>(config_.target_words);
  const auto labels = static_cast<size_t>(state.logits.cols());
  std::vector<double> scores(words.size() * width, kImpossibleLabel);
  for (size_t i = 0; i < words.size(); ++i) {
    double* row = scores.data() + i * width;
    if (words[i] != kStart)
      row[kEnd] = 0;
    else
      for (size_t k = 0; k < labels; ++k) row[kFirstLabel + k] = logits[i * labels + k];
  }
  return Tensor::of({static_cast<int64_t>(words.size()), config_.target_words}, scores,
                    store_.type(), store_.device());
}

void TextClassifier::reorder(DecoderState& decoder_state, std::span<const int32_t> parents) const {
  auto& state = static_cast<State&>(decoder_state);
  state.logits = rows_at(state.logits, Tensor::of(parents, store_.device()));
}

std::vector<std::vector<AttentionMap>> TextClassifier::attention(
    const TokenBatch& source, const TokenBatch& target_in) const {
  std::vector<std::vector<AttentionMap>> maps(static_cast<size_t>(source.sentences()));
  const Tensor alpha = read(source).weights;
  if (!alpha) return maps;
  const std::vector<double> weights = alpha.values();
  for (size_t b = 0; b < maps.size(); ++b) {
    const int64_t rows = target_in.offsets[b + 1] - target_in.offsets[b];
    const int64_t cols = source.offsets[b + 1] - source.offsets[b];
    AttentionMap map{
        .kind = "cross", .layer = 0, .head = 0, .rows = rows, .cols = cols, .weights = {}};
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)  // words of the question have weight 0
        map.weights.push_back(
            j < alpha.cols()
                ? static_cast<float>(
                      weights[b * static_cast<size_t>(alpha.cols()) + static_cast<size_t>(j)])
                : 0.0f);
    maps[b].push_back(std::move(map));
  }
  return maps;
}

}  // namespace fovea

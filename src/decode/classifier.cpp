#include "decode/classifier.h"

#include <algorithm>
#include <cmath>

#include "text/batch.h"

namespace fovea {
namespace {

constexpr BatchOptions kBatch{.tokens = 4096, .sentences = 64};

// Returns the index of the first id of the question, which follows the last </s>. REQUIRES: `ids`
// has a </s>.
size_t question_start(std::span<const int32_t> ids) {
  size_t at = ids.size();
  while (ids[at - 1] != kEos) --at;
  return at;
}

}  // namespace

Classifier::Classifier(const ModelBundle& bundle)
    : bundle_(bundle), network_(bundle.model->as<LabelPredictor>()) {
  check(network_ != nullptr, ExitCode::model, bundle.directory, ": a model of type ",
        bundle.config.type(), " gives no labels; train one with task: classify or task: read");
  const auto* own = bundle.config.as<ReaderConfig>();
  if (own && own->query == ReaderQuery::question) label_kind_ = LabelKind::answer;
}

std::vector<int32_t> Classifier::encode(const ClassificationInput& text, bool* cut) const {
  const auto longest = static_cast<size_t>(bundle_.model->max_length() - 1);
  std::vector<int32_t> ids = encode_example(bundle_.source, text.text, text.question, label_kind_);
  *cut = ids.size() > longest;
  if (!*cut) return ids;
  const size_t end = label_kind_ == LabelKind::answer ? question_start(ids) - 1 : ids.size();
  const size_t kept = longest - std::min(ids.size() - end, longest);
  ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(kept),  // but not of the question
            ids.begin() + static_cast<std::ptrdiff_t>(end));
  ids.resize(std::min(ids.size(), longest));
  return ids;
}

std::vector<ClassificationResult> Classifier::classify(
    std::span<const ClassificationInput> texts) const {
  std::vector<ClassificationResult> results(texts.size());
  std::vector<std::vector<int32_t>> ids;
  std::vector<int64_t> lengths, readable;  // readable: indices of the texts that have words
  for (size_t i = 0; i < texts.size(); ++i) {
    bool cut = false;
    const std::vector<int32_t> one = encode(texts[i], &cut);
    results[i].cut = cut;
    if (std::ranges::all_of(one, [](int32_t id) { return id == kEos; })) continue;
    ids.push_back(one);
    lengths.push_back(std::ssize(one));
    readable.push_back(static_cast<int64_t>(i));
  }
  for (const std::vector<int64_t>& batch : batches_by_length(lengths, kBatch)) {
    std::vector<std::vector<int32_t>> sources;
    std::vector<int64_t> members;
    for (const int64_t i : batch) {
      sources.push_back(ids[static_cast<size_t>(i)]);
      members.push_back(readable[static_cast<size_t>(i)]);
    }
    read(texts, members, sources, results);
  }
  return results;
}

void Classifier::read(std::span<const ClassificationInput> texts, std::span<const int64_t> members,
                      std::span<const std::vector<int32_t>> ids,
                      std::span<ClassificationResult> results) const {
  PackedSentences source;
  for (const std::vector<int32_t>& one : ids) source.add(one, PackedSentences::Mark::eos_after);
  const auto [scores, attention] = network_->predict_labels({source.ids, source.offsets});
  const std::vector<double> logits = scores.values();
  const std::vector<double> weights = attention ? attention.values() : std::vector<double>();
  const auto labels = static_cast<size_t>(scores.cols());
  const size_t longest = weights.size() / members.size();
  for (size_t b = 0; b < members.size(); ++b) {
    const auto i = static_cast<size_t>(members[b]);
    rank(std::span(logits).subspan(b * labels, labels), results[i]);
    if (attention)
      attend(texts[i], source[static_cast<int64_t>(b)],
             std::span(weights).subspan(b * longest, longest), results[i]);
  }
}

void Classifier::rank(std::span<const double> logits, ClassificationResult& result) const {
  const double top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - top);
  for (size_t k = 0; k < logits.size(); ++k)
    result.labels.emplace_back(bundle_.target.name(kFirstLabel + static_cast<int32_t>(k)),
                               std::exp(logits[k] - top) / sum);
  std::ranges::stable_sort(result.labels, std::ranges::greater(),
                           &std::pair<std::string, double>::second);
  result.label = result.labels.front().first;
  result.probability = result.labels.front().second;
}

// Sets the words of the result and their weights. The weight of a word is the sum of the weights of
// its pieces.
void Classifier::attend(const ClassificationInput& text, std::span<const int32_t> ids,
                        std::span<const double> weights, ClassificationResult& result) const {
  const Segmentation segmentation = bundle_.source.cut();
  const bool whole = label_kind_ == LabelKind::label;
  const auto document = whole ? ids : ids.first(question_start(ids.first(ids.size() - 1)));
  const std::vector<int> word = bundle_.source.words_of(document);
  result.words = bundle_.source.words(document);
  result.weights.assign(result.words.size(), 0);
  for (size_t j = 0; j < document.size(); ++j)
    result.weights[static_cast<size_t>(word[j])] += static_cast<float>(weights[j]);
  if (segmentation != Segmentation::words && segmentation != Segmentation::tokens) return;
  size_t at = 0;  // the words are taken from the text, so there is no <unk>
  for (const std::string& part : whole ? std::vector{text.text} : sentences_of(text.text)) {
    for (const std::string& word : bundle_.source.spelt(part))
      if (at < document.size() && document[at] != kEos) result.words[at++] = word;
    ++at;  // skips </s>
  }
}

}  // namespace fovea

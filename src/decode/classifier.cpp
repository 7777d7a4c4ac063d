#include "decode/classifier.h"

#include <algorithm>
#include <cmath>

#include "text/batch.h"

namespace fovea {
namespace {

constexpr BatchOptions kBatch{.tokens = 4096, .sentences = 64};

// Where the question begins: after the last </s>. REQUIRES: there is one.
size_t question_in(std::span<const int32_t> ids) {
  size_t at = ids.size();
  while (ids[at - 1] != kEos) --at;
  return at;
}

}  // namespace

Classifier::Classifier(const Package& package)
    : package_(package),
      asked_(package.config.query == ReaderQuery::question ? Asked::answer : Asked::label) {
  check(package.config.type == "reader", Exit::model, package.directory, ": a model of type ",
        package.config.type, " gives no labels; train one with task: classify or task: read");
}

std::vector<int32_t> Classifier::encode(const Asking& text, bool* cut) const {
  const auto longest = static_cast<size_t>(package_.model->max_length() - 1);
  std::vector<int32_t> ids = encode_example(package_.source, text.text, text.question, asked_);
  *cut = ids.size() > longest;
  if (!*cut) return ids;
  const size_t end = asked_ == Asked::answer ? question_in(ids) - 1 : ids.size();
  const size_t kept = longest - std::min(ids.size() - end, longest);
  ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(kept),  // the text gives way
            ids.begin() + static_cast<std::ptrdiff_t>(end));
  ids.resize(std::min(ids.size(), longest));
  return ids;
}

std::vector<Classified> Classifier::classify(std::span<const Asking> texts) const {
  std::vector<Classified> results(texts.size());
  std::vector<std::vector<int32_t>> ids;
  std::vector<int64_t> lengths, asked;  // of those that hold something to read
  for (size_t i = 0; i < texts.size(); ++i) {
    bool cut = false;
    const std::vector<int32_t> one = encode(texts[i], &cut);
    results[i].cut = cut;
    if (std::ranges::all_of(one, [](int32_t id) { return id == kEos; })) continue;
    ids.push_back(one);
    lengths.push_back(std::ssize(one));
    asked.push_back(static_cast<int64_t>(i));
  }
  for (const std::vector<int64_t>& batch : batches_by_length(lengths, kBatch)) {
    std::vector<std::vector<int32_t>> sources;
    std::vector<int64_t> members;
    for (const int64_t i : batch) {
      sources.push_back(ids[static_cast<size_t>(i)]);
      members.push_back(asked[static_cast<size_t>(i)]);
    }
    read(texts, members, sources, results);
  }
  return results;
}

void Classifier::read(std::span<const Asking> texts, std::span<const int64_t> members,
                      std::span<const std::vector<int32_t>> ids,
                      std::span<Classified> results) const {
  Packed source, target;
  for (const std::vector<int32_t>& one : ids) {
    source.add(one, Packed::Mark::eos_after);
    target.add({}, Packed::Mark::bos_before);
  }
  const Model& model = *package_.model;
  const auto state = model.start({source.ids, source.offsets});
  const Tensor scores = model.step(*state, target.ids);
  const std::vector<double> logits = scores.values();
  const auto maps = model.attention({source.ids, source.offsets}, {target.ids, target.offsets});
  for (size_t b = 0; b < members.size(); ++b) {
    const auto i = static_cast<size_t>(members[b]);
    const auto width = static_cast<size_t>(scores.cols());
    rank(std::span(logits).subspan(b * width, width), results[i]);
    if (!maps[b].empty())
      attend(texts[i], source[static_cast<int64_t>(b)], maps[b].front(), results[i]);
  }
}

void Classifier::rank(std::span<const double> logits, Classified& result) const {
  const double top = *std::ranges::max_element(logits);
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - top);
  for (size_t k = kSpecials; k < logits.size(); ++k)
    result.labels.emplace_back(package_.target.name(static_cast<int32_t>(k)),
                               std::exp(logits[k] - top) / sum);
  std::ranges::stable_sort(result.labels, std::ranges::greater(),
                           &std::pair<std::string, double>::second);
  result.label = result.labels.front().first;
  result.probability = result.labels.front().second;
}

// Pieces of a word share their weights.
void Classifier::attend(const Asking& text, std::span<const int32_t> ids, const AttentionMap& map,
                        Classified& result) const {
  const Cut cut = package_.source.cut();
  const bool whole = asked_ == Asked::label;
  const auto document = whole ? ids : ids.first(question_in(ids.first(ids.size() - 1)));
  const std::vector<int> word = package_.source.words_of(document);
  result.words = package_.source.words(document);
  result.weights.assign(result.words.size(), 0);
  for (size_t j = 0; j < document.size(); ++j)
    result.weights[static_cast<size_t>(word[j])] += map.weights[j];
  if (cut != Cut::words && cut != Cut::tokens) return;
  size_t at = 0;  // words that the model does not know are shown as well
  for (const std::string& part : whole ? std::vector{text.text} : sentences_of(text.text)) {
    for (const std::string& word : package_.source.spelt(part))
      if (at < document.size() && document[at] != kEos) result.words[at++] = word;
    ++at;  // </s>
  }
}

}  // namespace fovea

#include "text/batch.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace fovea {
namespace {

// The token budget of a batch: the cost of the pairs that the batch has so far.
class TokenBudget {
 public:
  explicit TokenBudget(const BatchOptions& options) : options_(options) {}

  // Adds a pair with these numbers of tokens if it fits, and returns whether it did. An empty batch
  // accepts any pair.
  bool add(int64_t source, int64_t target) {
    const bool padded = options_.counted == TokenCount::padded;
    const int64_t count = sentences_ + 1;
    const int64_t s = padded ? std::max(source_, source) : source_ + source;
    const int64_t t = padded ? std::max(target_, target) : target_ + target;
    const int64_t cost = padded ? std::max(s, t) * count : std::max(s, t);
    const bool full = options_.sentences > 0 && count > options_.sentences;
    if (sentences_ > 0 && (cost > options_.tokens || full)) return false;
    sentences_ = count;
    source_ = s;
    target_ = t;
    return true;
  }

  void clear() { sentences_ = source_ = target_ = 0; }

 private:
  const BatchOptions& options_;
  int64_t sentences_ = 0, source_ = 0, target_ = 0;  // source_, target_: sum; maximum if padded
};

int64_t pair_length(const Corpus& corpus, int64_t i) {
  return std::max(corpus.source_length(i), corpus.target_length(i));
}

// Sorts `pairs` into `sorted` by the bucket of their length (length / width). Pairs of one bucket
// keep their order. This is a counting sort, which reads each length only twice.
void sort_by_bucket(const Corpus& corpus, int64_t width, std::span<const int64_t> pairs,
                    std::span<int64_t> sorted) {
  std::vector<size_t> begins(1);  // first position of each bucket, then the end of the last bucket
  for (int64_t i = 0; i < std::ssize(pairs); ++i) {
    const auto bucket = static_cast<size_t>(pair_length(corpus, i) / width);
    if (bucket + 2 > begins.size()) begins.resize(bucket + 2);
    ++begins[bucket + 1];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  for (const int64_t i : pairs)
    sorted[begins[static_cast<size_t>(pair_length(corpus, i) / width)]++] = i;
}

}  // namespace

void BatchOptions::describe(Settings& s) {
  s.field(
       "tokens", tokens,
       "maximum tokens of either side of a batch, including </s>; auto: as many as fit in memory")
      .at_least(1)
      .or_word("auto", kAutomaticTokens);
  s.field("sentences", sentences, "maximum number of sentences in a batch; 0 means no limit")
      .at_least(0);
  s.choice("counted", counted, {{"packed", TokenCount::packed}, {"padded", TokenCount::padded}},
           "packed counts actual tokens, padded counts longest × sentences");
  s.field("bucket_width", bucket_width, "number of lengths that share a bucket").at_least(1);
}

std::span<const int32_t> PackedSentences::operator[](int64_t i) const {
  return std::span(ids).subspan(offsets[i], offsets[i + 1] - offsets[i]);
}

void PackedSentences::add(std::span<const int32_t> sentence, Mark mark) {
  if (mark == Mark::bos_before) ids.push_back(kBos);
  ids.insert(ids.end(), sentence.begin(), sentence.end());
  if (mark == Mark::eos_after) ids.push_back(kEos);
  offsets.push_back(static_cast<int32_t>(ids.size()));
}

void PackedLinks::add(std::span<const Link> links, int64_t words) {
  if (offsets.empty()) offsets.push_back(0);
  auto link = links.begin();
  for (int64_t n = 0; n < words; ++n) {
    for (; link != links.end() && link->second == n; ++link) keys.push_back(link->first);
    offsets.push_back(static_cast<int32_t>(keys.size()));
  }
}

int64_t PackedLinks::linked_words() const {
  int64_t count = 0;
  for (size_t n = 1; n < offsets.size(); ++n) count += offsets[n] > offsets[n - 1];
  return count;
}

BatchPlan::BatchPlan(const Corpus& corpus, const BatchOptions& options, int64_t epoch)
    : corpus_(&corpus), pairs_(corpus.size()) {
  Random random(options.seed, static_cast<uint64_t>(epoch));
  std::vector<int64_t> shuffled(pairs_.size());
  std::iota(shuffled.begin(), shuffled.end(), 0);
  random.shuffle(shuffled);
  sort_by_bucket(corpus, options.bucket_width, shuffled, pairs_);

  TokenBudget budget(options);
  for (size_t i = 0; i < pairs_.size(); ++i) {
    const int64_t source = corpus.source_length(pairs_[i]) + 1;
    const int64_t target = corpus.target_length(pairs_[i]) + 1;
    if (i > 0 && budget.add(source, target)) continue;
    starts_.push_back(static_cast<int64_t>(i));
    budget.clear();
    budget.add(source, target);
  }
  order_.resize(starts_.size());
  std::iota(order_.begin(), order_.end(), 0);
  random.shuffle(order_);
  starts_.push_back(static_cast<int64_t>(pairs_.size()));
}

std::span<const int64_t> BatchPlan::members(int64_t i) const {
  const int64_t b = order_[i];
  return std::span(pairs_).subspan(starts_[b], starts_[b + 1] - starts_[b]);
}

PairBatch BatchPlan::batch(int64_t i) const { return gather(*corpus_, members(i)); }

PairBatch gather(const Corpus& corpus, std::span<const int64_t> members) {
  PairBatch batch;
  for (const int64_t i : members) {
    const SentencePair pair = corpus[i];
    batch.source.add(pair.source, PackedSentences::Mark::eos_after);
    const bool labels = corpus.targets() == TargetKind::labels;
    const auto input = labels ? pair.target.first(0) : pair.target;
    batch.target_in.add(input, PackedSentences::Mark::bos_before);
    batch.target_out.add(pair.target,
                         labels ? PackedSentences::Mark::none : PackedSentences::Mark::eos_after);
    batch.lines.push_back(pair.line);
    if (corpus.linked()) batch.links.add(pair.links, std::ssize(pair.target) + 1);  // + 1 for </s>
  }
  batch.members.assign(members.begin(), members.end());
  batch.target_tokens = batch.target_out.tokens();
  return batch;
}

std::vector<std::vector<int64_t>> batches_by_length(std::span<const int64_t> lengths,
                                                    const BatchOptions& options) {
  std::vector<int64_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<int64_t>> batches;
  TokenBudget budget(options);
  for (const int64_t i : order) {
    const int64_t tokens = lengths[i] + 1;
    if (batches.empty() || !budget.add(tokens, 0)) {
      batches.emplace_back();
      budget.clear();
      budget.add(tokens, 0);
    }
    batches.back().push_back(i);
  }
  return batches;
}

PackedSentences pack_source(std::span<const std::vector<int32_t>> sentences,
                            std::span<const int64_t> members) {
  PackedSentences packed;
  for (const int64_t i : members) packed.add(sentences[i], PackedSentences::Mark::eos_after);
  return packed;
}

}  // namespace fovea

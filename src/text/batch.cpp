#include "text/batch.h"

#include <algorithm>
#include <cmath>
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

int64_t bucket_of(const Corpus& corpus, int64_t width, int64_t i) {
  return pair_length(corpus, i) / width;
}

// The first position of each bucket in a list of all pairs that is sorted by bucket.
std::vector<size_t> bucket_begins(const Corpus& corpus, int64_t width,
                                  std::span<const int64_t> pairs) {
  std::vector<size_t> begins(1);
  for (const int64_t i : pairs) {
    const auto bucket = static_cast<size_t>(bucket_of(corpus, width, i));
    if (bucket + 2 > begins.size()) begins.resize(bucket + 2);
    ++begins[bucket + 1];
  }
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  return begins;
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

void PackedSentences::add_source(std::span<const int32_t> sentence, const SentenceFrame& frame) {
  ids.insert(ids.end(), frame.source_prefix.begin(), frame.source_prefix.end());
  ids.insert(ids.end(), sentence.begin(), sentence.end());
  add(frame.source_suffix, frame.source_end ? Mark::eos_after : Mark::none);
}

void PackedSentences::add_target_in(std::span<const int32_t> words, const SentenceFrame& frame) {
  ids.push_back(frame.start);
  ids.insert(ids.end(), frame.target_prefix.begin(), frame.target_prefix.end());
  add(words, Mark::none);
}

void PackedLinks::add(std::span<const Link> links, int64_t words, const SentenceFrame& frame) {
  if (offsets.empty()) offsets.push_back(0);
  const auto prefix = static_cast<int32_t>(frame.source_prefix.size());
  offsets.insert(offsets.end(), frame.target_prefix.size(), static_cast<int32_t>(keys.size()));
  auto link = links.begin();
  for (int64_t n = 0; n < words; ++n) {
    for (; link != links.end() && link->second == n; ++link) keys.push_back(prefix + link->first);
    offsets.push_back(static_cast<int32_t>(keys.size()));
  }
}

int64_t PackedLinks::linked_words() const {
  int64_t count = 0;
  for (size_t n = 1; n < offsets.size(); ++n) count += offsets[n] > offsets[n - 1];
  return count;
}

namespace {

// Appends `count` of the pairs begin … end − 1. Successive epochs go through a fixed random order
// of them, so that all pairs are used equally often.
void append_share(int64_t begin, int64_t end, int64_t count, uint64_t seed, int64_t epoch,
                  std::vector<int64_t>& pairs) {
  constexpr uint64_t kStream = uint64_t{1} << 62;  // unlike all epochs
  std::vector<int64_t> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  Random(seed, kStream + static_cast<uint64_t>(begin)).shuffle(order);
  const int64_t first = epoch % (end - begin) * count % (end - begin);
  for (int64_t k = 0; k < count; ++k) pairs.push_back(order[(first + k) % (end - begin)]);
}

// The pairs of an epoch in the order of the corpus, with the weights of its parts.
std::vector<int64_t> pairs_of_epoch(const Corpus& corpus, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> pairs;
  if (corpus.parts().empty()) {
    pairs.resize(corpus.size());
    std::iota(pairs.begin(), pairs.end(), 0);
  }
  int64_t begin = 0;
  for (const auto& [end, weight] : corpus.parts()) {
    double whole = 0;
    const double share = std::modf(weight, &whole);
    for (; whole > 0; --whole)
      for (int64_t i = begin; i < end; ++i) pairs.push_back(i);
    const auto count = std::llround(share * static_cast<double>(end - begin));
    if (count > 0) append_share(begin, end, count, seed, epoch, pairs);
    begin = end;
  }
  return pairs;
}

}  // namespace

BatchPlan::BatchPlan(const Corpus& corpus, const BatchOptions& options, int64_t epoch)
    : corpus_(&corpus) {
  Random random(options.seed, static_cast<uint64_t>(epoch));
  // A counting sort by length. Pairs of one bucket keep their random order.
  std::vector<int64_t> shuffled = pairs_of_epoch(corpus, options.seed, epoch);
  std::vector<size_t> begins = bucket_begins(corpus, options.bucket_width, shuffled);
  random.shuffle(shuffled);
  pairs_.resize(shuffled.size());
  for (const int64_t i : shuffled) pairs_[begins[bucket_of(corpus, options.bucket_width, i)]++] = i;

  TokenBudget budget(options);
  const SentenceFrame& frame = corpus.frame();
  for (size_t i = 0; i < pairs_.size(); ++i) {
    const int64_t source = corpus.source_length(pairs_[i]) + frame.source_pieces();
    const int64_t target = corpus.target_length(pairs_[i]) + 1 + std::ssize(frame.target_prefix);
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
  return gather(corpus, members, corpus.frame());
}

PairBatch gather(const Corpus& corpus, std::span<const int64_t> members,
                 const SentenceFrame& frame) {
  PairBatch batch;
  for (const int64_t i : members) {
    const SentencePair pair = corpus[i];
    batch.source.add_source(pair.source, frame);
    const bool labels = corpus.targets() == TargetKind::labels;
    const auto input = labels ? pair.target.first(0) : pair.target;
    batch.target_in.add_target_in(input, frame);
    std::vector<int32_t>& out = batch.target_out.ids;
    out.insert(out.end(), frame.target_prefix.begin(), frame.target_prefix.end());
    batch.target_out.add(pair.target,
                         labels ? PackedSentences::Mark::none : PackedSentences::Mark::eos_after);
    batch.lines.push_back(pair.line);
    if (corpus.linked())
      batch.links.add(pair.links, std::ssize(pair.target) + 1, frame);  // + 1 for </s>
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

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "decode/search.h"
#include "support/table_model.h"
#include "temporary.h"
#include "text/batch.h"

namespace fovea {
namespace {

using Words = TableModel::Words;
using Row = TableModel::Row;

constexpr double kNever = -std::numeric_limits<double>::infinity();

// Scores from a hash of the words before.
Row random_row(uint64_t seed, const Words& prefix) {
  uint64_t h = seed;
  for (const int32_t w : prefix) h = h * 999983 + static_cast<uint64_t>(w);
  Random random(h);
  Row row(9);
  for (double& x : row) x = 1.5 * random.normal();
  row[kEos] += 0.2 * static_cast<double>(prefix.size());
  return row;
}

TableModel random_model(uint64_t seed) {
  return {9, 40, [seed](const Words&, const Words& prefix) { return random_row(seed, prefix); }};
}

std::vector<Hypothesis> find(const Model& model, const SearchOptions& options,
                             const SentenceConstraints& constraints = {}) {
  const Model* const models[] = {&model};
  PackedSentences source;
  source.add_source(Words{4, 5, 6}, model.frame());
  const int64_t number = 0;
  return search(models, {source.ids, source.offsets}, std::span(&number, 1), options,
                std::span(&constraints, 1))
      .front();
}

void log_softmax(Row& row) {
  double sum = 0;
  for (const double x : row) sum += std::exp(x);
  for (double& x : row) x -= std::log(sum);
}

// The processors of Transformers, in their order. `words` begin with the start piece.
void process(Row& row, const Words& words, const SearchOptions& o) {
  log_softmax(row);
  const auto n = static_cast<size_t>(o.no_repeat_ngram);
  for (size_t i = 0; n > 0 && i + n <= words.size(); ++i)
    if (std::equal(words.begin() + static_cast<long>(i),
                   words.begin() + static_cast<long>(i + n - 1),
                   words.end() - static_cast<long>(n - 1)))
      row[static_cast<size_t>(words[i + n - 1])] = kNever;
  for (const int32_t word : o.suppress) row[static_cast<size_t>(word)] = kNever;
  const auto length = static_cast<int64_t>(words.size());
  if (length < o.min_length) row[kEos] = kNever;
  if (length == o.max_length) row.assign(row.size(), kNever), row[kEos] = 0;
  if (o.renormalize) log_softmax(row);
}

struct ScoredWords {
  double score;
  Words words;
};

// generate() of Transformers for one sentence.
std::vector<ScoredWords> generate(uint64_t seed, const SearchOptions& o) {
  const auto k = static_cast<size_t>(o.beam);
  const auto normalised = [&](double sum, int64_t length) {
    return sum / std::pow(static_cast<double>(length), o.length_penalty);
  };
  std::vector<ScoredWords> live{{0, {kBos}}}, finished;
  for (int64_t length = 1; length <= o.max_length && !live.empty(); ++length) {
    std::vector<ScoredWords> candidates;
    for (const ScoredWords& h : live) {
      Row row = random_row(seed, h.words);
      process(row, h.words, o);
      for (size_t w = 0; w < row.size(); ++w) {
        if (row[w] == kNever) continue;
        candidates.push_back({h.score + row[w], h.words});
        candidates.back().words.push_back(static_cast<int32_t>(w));
      }
    }
    std::ranges::stable_sort(candidates, std::greater(), &ScoredWords::score);
    if (candidates.size() > 2 * k) candidates.resize(2 * k);
    live.clear();
    for (size_t rank = 0; rank < candidates.size(); ++rank) {
      const ScoredWords& c = candidates[rank];
      if (c.words.back() != kEos) {
        if (live.size() < k) live.push_back(c);
      } else if (rank < k) {
        finished.push_back({normalised(c.score, length), {c.words.begin() + 1, c.words.end()}});
      }
    }
    std::ranges::stable_sort(finished, std::greater(), &ScoredWords::score);
    if (finished.size() < k) continue;
    finished.resize(k);
    const bool longest = o.early_stopping == EarlyStopping::never && o.length_penalty > 0;
    const double best = normalised(candidates[0].score, longest ? o.max_length : length);
    if (o.early_stopping == EarlyStopping::yes || k == 1 || finished.back().score >= best) break;
  }
  return finished;
}

// The options of one of many searches.
SearchOptions options_of(uint64_t seed) {
  Random random(seed);
  SearchOptions o;
  o.beam = o.n_best = std::array{1, 2, 3, 5}[random.below(4)];
  o.length_penalty = std::array{-0.5, 0.0, 0.6, 1.0, 2.0}[random.below(5)];
  o.max_length = 3 + static_cast<int64_t>(random.below(12));
  o.max_length_factor = 1000;
  o.rule = BeamRule::transformers;
  o.early_stopping = static_cast<EarlyStopping>(random.below(3));
  if (random.below(2)) o.no_repeat_ngram = 1 + static_cast<int64_t>(random.below(3));
  if (random.below(2)) o.min_length = static_cast<int64_t>(random.below(4));
  if (random.below(2)) o.suppress = {kPad, 7};
  o.renormalize = random.below(2) == 1;
  return o;
}

TEST(SearchRules, TransformersFindsTheSameTranslations) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const SearchOptions options = options_of(seed);
    const auto expected = generate(seed, options);
    const auto found = find(random_model(seed), options);
    ASSERT_EQ(found.size(), expected.size()) << seed;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].words, expected[i].words) << seed;
      EXPECT_NEAR(found[i].score, expected[i].score, 1e-9) << seed;
    }
  }
}

TEST(SearchRules, EachRuleFindsOtherTranslations) {
  int by_rule = 0, by_stopping = 0, by_length = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto words = [&](BeamRule rule, EarlyStopping stopping) {
      const SearchOptions o{.beam = 4,
                            .length_penalty = 1,
                            .allow_unknown = true,
                            .rule = rule,
                            .early_stopping = stopping};
      return find(random_model(seed), o).front().words;
    };
    const Words yes = words(BeamRule::transformers, EarlyStopping::yes);
    const Words no = words(BeamRule::transformers, EarlyStopping::no);
    const Words never = words(BeamRule::transformers, EarlyStopping::never);
    by_rule += words(BeamRule::fovea, EarlyStopping::no) != never;
    by_stopping += yes != no;
    by_length += no != never;
  }
  EXPECT_GT(by_rule, 0);
  EXPECT_GT(by_stopping, 0);
  EXPECT_GT(by_length, 0);
}

// p(</s>) = 0.5, p(4) = 0.3, p(5) = 0.2; 4 ends with 0.5 and 5 with 1. With a beam of two, </s>
// leaves only one hypothesis alive, unless another one takes its place. The search of Transformers
// stops after the second step, although a longer translation would have a better score.
TEST(SearchRules, TheNextCandidateTakesThePlaceOfAFinishedOne) {
  const TableModel model(7, 10, [](const Words&, const Words& prefix) {
    Row row(7, -50.0);
    if (prefix.size() == 1) {
      row[kEos] = std::log(0.5), row[4] = std::log(0.3), row[5] = std::log(0.2);
    } else if (prefix.back() == 4) {
      row[kEos] = row[6] = std::log(0.5);
    } else {
      row[kEos] = 0;
    }
    return row;
  });
  SearchOptions options{.beam = 2, .n_best = 2, .length_penalty = 1};
  const auto fovea = find(model, options);
  options.rule = BeamRule::transformers;
  const auto transformers = find(model, options);
  EXPECT_EQ(fovea[0].words, (Words{4, 6, kEos}));  // ln 0.15 / 3 = -0.63
  EXPECT_EQ(fovea[1].words, Words{kEos});          // ln 0.5 = -0.69
  EXPECT_EQ(transformers[0].words, Words{kEos});
  EXPECT_EQ(transformers[1].words, (Words{5, kEos}));  // ln 0.2 / 2 = -0.80; the search stops here
}

TEST(SearchRules, AnUnforcedEndCutsTheTranslation) {
  const TableModel model(7, 20, [](const Words&, const Words&) {
    Row row(7, -40.0);
    row[4] = 0;
    return row;
  });
  SearchOptions options{.beam = 2, .max_length = 3, .rule = BeamRule::transformers};
  EXPECT_EQ(find(model, options).front().words, (Words{4, 4, kEos}));
  options.forced_end = false;
  const Hypothesis cut = find(model, options).front();
  EXPECT_EQ(cut.words, (Words{4, 4, 4, kEos}));
  EXPECT_NEAR(cut.log_prob, 0, 1e-9);
}

TEST(SearchRules, ASuppressedPieceNeverOccurs) {
  for (const BeamRule rule : {BeamRule::fovea, BeamRule::transformers})
    for (uint64_t seed = 0; seed < 20; ++seed)
      for (const Hypothesis& h :
           find(random_model(seed), {.beam = 4, .n_best = 4, .rule = rule, .suppress = {6, 8}}))
        for (const int32_t word : h.words) EXPECT_TRUE(word != 6 && word != 8);
}

// The model sees the pieces of the frame, and no translation has them.
TEST(SearchRules, TheFrameIsNotPartOfTheTranslation) {
  for (const BeamRule rule : {BeamRule::fovea, BeamRule::transformers}) {
    std::vector<Words> seen;
    TableModel framed(9, 40, [&](const Words& source, const Words& prefix) {
      EXPECT_EQ(source, (Words{8, 4, 5, 6, 7}));
      seen.push_back(prefix);
      return random_row(1, prefix.size() < 3 ? prefix : Words(prefix.begin() + 2, prefix.end()));
    });
    framed.set_frame({.start = 2,
                      .source_prefix = {8},
                      .source_suffix = {7},
                      .target_prefix = {6, 5},
                      .source_end = false});
    TableModel plain(9, 40,
                     [&](const Words&, const Words& prefix) { return random_row(1, prefix); });
    plain.set_frame({.start = 5});
    SearchOptions options{.beam = 3, .n_best = 3, .length_penalty = 0, .rule = rule};
    const auto expected = find(plain, options), found = find(framed, options);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].words, expected[i].words);
      EXPECT_EQ(found[i].log_prob, expected[i].log_prob);
    }
    EXPECT_EQ(seen.front(), Words{2});
    EXPECT_EQ(seen[1], (Words{2, 6}));
    EXPECT_EQ(seen[2], (Words{2, 6, 5}));
    options.length_penalty = 1;
    const auto scored = find(framed, options);
    const double counted = rule == BeamRule::transformers ? 2 : 0;
    for (const Hypothesis& h : scored)
      EXPECT_NEAR(h.score, h.log_prob / (counted + static_cast<double>(h.words.size())), 1e-12);
  }
}

bool contains(const Words& words, const Words& phrase) {
  return std::search(words.begin(), words.end(), phrase.begin(), phrase.end()) != words.end();
}

TEST(SearchRules, EveryTranslationHasItsTerms) {
  for (const BeamRule rule : {BeamRule::fovea, BeamRule::transformers})
    for (uint64_t seed = 0; seed < 150; ++seed) {
      Random random(seed);
      SentenceConstraints own;
      int64_t pieces = 0;
      for (uint64_t n = 1 + random.below(4); n > 0; --n) {
        TermPieces term(1 + random.below(2));
        for (Words& words : term)
          for (uint64_t w = 1 + random.below(3); w > 0; --w)
            words.push_back(static_cast<int32_t>(4 + random.below(5)));
        pieces += static_cast<int64_t>(std::min(term.front().size(), term.back().size()));
        own.terms.push_back(term);
      }
      const SearchOptions options{.beam = 1 + static_cast<int64_t>(random.below(5)),
                                  .max_length = pieces + 1 + static_cast<int64_t>(random.below(6)),
                                  .rule = rule};
      const auto found = find(random_model(seed), options, own);
      ASSERT_FALSE(found.empty()) << seed;
      EXPECT_LE(std::ssize(found.front().words), options.max_length);
      for (const TermPieces& term : own.terms)
        EXPECT_TRUE(std::ranges::any_of(term, [&](const Words& words) {
          return contains(found.front().words, words);
        })) << seed;
    }
}

// With a beam that holds every hypothesis, the search finds the best translation with the terms.
TEST(SearchRules, AWideBeamFindsTheBestTranslationWithTheTerms) {
  constexpr int64_t kLongest = 4;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Random random(seed);
    SentenceConstraints own{.terms = {{{static_cast<int32_t>(4 + random.below(5)),
                                        static_cast<int32_t>(4 + random.below(5))}}}};
    const Words& term = own.terms.front().front();
    ScoredWords best{kNever, {}};
    const std::function<void(Words, double)> extend = [&](Words words, double sum) {
      Row row = random_row(seed, words);
      log_softmax(row);
      const Words own_words(words.begin() + 1, words.end());
      if (contains(own_words, term) && sum + row[kEos] > best.score)
        best = {sum + row[kEos], own_words};
      if (std::ssize(words) == kLongest) return;
      for (int32_t w = 4; w < 9; ++w) {
        words.push_back(w);
        extend(words, sum + row[static_cast<size_t>(w)]);
        words.pop_back();
      }
    };
    extend({kBos}, 0);
    best.words.push_back(kEos);
    const auto found =
        find(random_model(seed), {.beam = 500, .length_penalty = 0, .max_length = kLongest}, own);
    EXPECT_EQ(found.front().words, best.words) << seed;
    EXPECT_NEAR(found.front().log_prob, best.score, 1e-9);
  }
}

TEST(SearchRules, ConstraintsDoNotDependOnTheBatch) {
  const TableModel model = random_model(5);
  const Model* const models[] = {&model};
  std::vector<SentenceConstraints> own(4);
  own[0].terms = {{{4, 5}}, {{6}, {7, 8}}, {{8}}, {{5}}, {{4, 4}}};
  own[1].prefix = {7, 7};
  own[3].terms = {{{8, 8, 4}}};
  PackedSentences sources;
  for (const Words& s : {Words{4}, Words{5, 6}, Words{6, 7}, Words{5}})
    sources.add(s, PackedSentences::Mark::eos_after);
  const std::vector<int64_t> numbers{0, 1, 2, 3};
  const SearchOptions options{.beam = 3, .n_best = 2, .no_repeat_ngram = 3};
  const auto all = search(models, {sources.ids, sources.offsets}, numbers, options, own);
  EXPECT_EQ(all[1].front().words[0], 7);
  EXPECT_EQ(all[1].front().words[1], 7);
  for (size_t i = 0; i < own.size(); ++i) {
    PackedSentences one;
    one.add(sources[static_cast<int64_t>(i)], PackedSentences::Mark::none);
    const auto alone = search(models, {one.ids, one.offsets}, std::span(&numbers[i], 1), options,
                              std::span(&own[i], 1))
                           .front();
    ASSERT_EQ(alone.size(), all[i].size());
    for (size_t n = 0; n < alone.size(); ++n) {
      EXPECT_EQ(alone[n].words, all[i][n].words);
      EXPECT_EQ(alone[n].log_prob, all[i][n].log_prob);
    }
  }
}

TEST(SearchRules, TermsThatDoNotFitAreRejected) {
  SentenceConstraints own{.terms = {{Words(45, 4)}}};
  EXPECT_NE(message_of(ExitCode::usage, [&] { find(random_model(1), {}, own); })
                .find("the prefix and the terms have 45 pieces, and the model takes 39"),
            std::string::npos);
}

}  // namespace
}  // namespace fovea

#include <cmath>
#include <numeric>

#include "attention/attentive_reader.h"
#include "attention/hard_sample.h"
#include "attention/registry.h"
#include "support/parity.h"

namespace fovea::parity {
namespace {

// Sentences, longest, steps, half the size of states and annotations, inner size.
const Shapes kDecodings{.largest = {8, 20, 5, 20, 16},
                        .large = {{32, 40, 6, 128, 256}, {3, 200, 3, 32, 33}}};

AttentionConfig config_of(const std::string& kind, const std::string& score, const Sizes& n) {
  AttentionConfig c;
  c.kind = kind, c.score = score;
  c.inner = n[4], c.window = 1 + n[4] % 4, c.gaussians = 1 + n[4] % 5, c.slack = n[4] % 3;
  return c;
}

// The rows of a step: the previous row that each continues, and its sentence. Rows change as
// sentences end in training, or as search repeats and drops hypotheses.
struct Rows {
  std::vector<int32_t> parents, sentences;

  static Rows first(Trial& t, int64_t sentences) {
    Rows rows;
    rows.sentences.resize(static_cast<size_t>(sentences));
    std::iota(rows.sentences.begin(), rows.sentences.end(), 0);
    t.random().shuffle(rows.sentences);
    return rows;
  }
  Rows next(Trial& t) const {
    Rows rows;
    const size_t count = sentences.size();
    const bool training = t.number() % 3 == 0;
    const size_t kept = training ? 1 + t.random().below(count) : 1 + t.random().below(2 * count);
    for (size_t i = 0; i < kept; ++i) {
      const size_t parent = training ? i : t.random().below(count);
      rows.parents.push_back(static_cast<int32_t>(parent));
      rows.sentences.push_back(sentences[parent]);
    }
    return rows;
  }
};

void expect_attended(Trial& t, const AttentionResult& at) {
  t.expect("context", at.context);
  t.expect("weights", at.weights);
  for (const char* name : {"soft", "near"})
    if (at.shown[name]) t.expect(name, at.shown[name]);
  if (at.shown["p_t"]) t.expect_value("position", at.shown["p_t"]);
  if (at.now["kappa"]) t.expect("kappa", at.now["kappa"]);
  if (!at.log_choice) return;
  t.expect("surrogate", surrogate_loss(at.log_choice, at.entropy, t.constant(at.entropy.shape()),
                                       {1, 0.1, 0.2}, at.entropy.rows()));
}

void decode(Trial& t, const Sizes& n, const std::string& kind, const std::string& score) {
  const int64_t size = 2 * n[3];
  const auto attention =
      make_attention({t.store(), ""}, config_of(kind, score, n), {size, size, n[1]});
  t.ready(t.store());
  const SentenceOffsets sentences = t.packing(t.lengths(n[0], n[1]));
  // Scores of about 1, and windows that move slowly: otherwise they leave the sentence soon.
  const double scale = std::pow(static_cast<double>(size), -0.25) * (kind == "window" ? 0.5 : 1);
  const Tensor h = t.input({sentences.tokens, size}, scale);
  const SourceMemory memory = attention->remember(h, sentences);
  Rows rows = Rows::first(t, n[0]);
  AttentionState before;
  for (int64_t step = 0; step < n[2]; ++step) {
    if (step > 0) {
      rows = rows.next(t);
      before = t.number() % 3 == 0 ? first_rows(before, static_cast<int64_t>(rows.sentences.size()))
                                   : chosen_rows(before, t.integers(rows.parents));
    }
    const Tensor s = t.input({std::ssize(rows.sentences), size}, scale);
    const AttentionResult at = attention->attend({s, t.integers(rows.sentences)}, memory, before);
    const bool same = find_mechanism(kind)->query == AttentionMechanism::Query::sentence;
    if (!same || step == 0) expect_attended(t, at);
    before = at.now;
  }
}

// Rounding to bf16 changes choices, including the centre of a window.
Bar bar_of(const std::string& kind) {
  for (const char* chooses : {"local-p", "hard-argmax", "hard-sample", "forward"})
    if (kind == chooses) return Bar::choices;
  return Bar::products;
}

void check_kind(Family& family, const std::string& kind, const std::string& score) {
  family.check(kind + " " + score, bar_of(kind), kDecodings,
               [&](Trial& t, const Sizes& n) { decode(t, n, kind, score); });
}

TEST(Parity, Mechanisms) {
  Family family("mechanisms");
  for (const AttentionMechanism& mechanism : attention_mechanisms()) {
    if (mechanism.about.name == std::string("none")) continue;
    if (mechanism.scoring == AttentionMechanism::ScoreUse::none)
      check_kind(family, mechanism.about.name, "auto");
    else
      for (const AttentionInfo& score : attention_scores())
        check_kind(family, mechanism.about.name, score.name);
  }
  family.check("reader", Bar::products, kDecodings, [](Trial& t, const Sizes& n) {
    const ReaderAttention read({t.store(), ""}, {n[3], 2 * n[3], n[4], n[2]});
    t.ready(t.store());
    const SentenceOffsets documents = t.packing(t.lengths(n[0], n[1]));
    const Tensor h = t.input({documents.tokens, n[3]}), u = t.input({n[0], 2 * n[3]});
    const auto found = read(h, documents, u);
    t.expect("g", found.g);
    t.expect("weights", found.weights);
  });
}

}  // namespace
}  // namespace fovea::parity

#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "decode/search.h"
#include "models/decodable.h"
#include "support/network_settings.h"
#include "support/parity.h"

// Long decodings of a Transformer with changing rows. On a GPU the key/value cache is enlarged
// several times, and most steps are replays of a CUDA graph.
namespace fovea::parity {
namespace {

// Sentences, longest source, steps, index into kHeads.
const Shapes kDecodings{.largest = {4, 6, 8, 3},
                        .large = {{3, 9, 70, 2}, {30, 5, 6, 4}, {50, 5, 6, 1}, {3, 9, 4, 6}},
                        .few = 8};

ModelConfig config_of(const Sizes& n) {
  constexpr struct {
    int64_t size, heads;
  } kHeads[] = {{36, 3}, {256, 4}, {256, 2}, {512, 8}, {1024, 16}, {1024, 8}};
  ModelConfig c;
  auto& own = transformer_of(c);
  c.size = kHeads[n[3] - 1].size, own.heads = kHeads[n[3] - 1].heads;
  own.inner = 64;
  c.encoder_layers = c.decoder_layers = 1;
  c.source_words = c.target_words = 40;
  c.max_length = std::max(n[1], n[2]) + 5;
  return c;
}

void decode(Trial& t, const Sizes& n, const ModelConfig& config) {
  const Decodable& model = *t.model(config).as<Decodable>();
  const auto word = [&] { return static_cast<int32_t>(3 + t.random().below(37)); };
  const std::vector<int32_t> offsets = Trial::offsets(t.lengths(n[0], n[1]));
  std::vector<int32_t> ids(static_cast<size_t>(offsets.back()));
  std::ranges::generate(ids, word);
  const auto state = model.start({ids, offsets});
  std::vector<int32_t> next(static_cast<size_t>(n[0]), 1);
  for (int64_t step = 0; step < n[2]; ++step) {
    t.expect_numbers("scores", model.step(*state, next).values());
    const auto most = static_cast<size_t>(3 * n[0]);
    const size_t rows = t.random().below(3) ? next.size() : 1 + t.random().below(most);
    std::vector<int32_t> parents(rows);
    for (int32_t& p : parents) p = static_cast<int32_t>(t.random().below(next.size()));
    model.reorder(*state, parents);
    next.resize(rows);
    std::ranges::generate(next, word);
  }
}

// As with a beam of four. The rows of a sentence are adjacent. On a GPU most blocks then process
// rows of one sentence, until the first sentence has lost a row.
void decode_with_beams(Trial& t, const Sizes& n) {
  constexpr int32_t kBeam = 4;
  const Decodable& model = *t.model(config_of(n)).as<Decodable>();
  const std::vector<int32_t> offsets = Trial::offsets(t.lengths(n[0], n[1]));
  const auto word = [&] { return static_cast<int32_t>(3 + t.random().below(37)); };
  std::vector<int32_t> ids(static_cast<size_t>(offsets.back())), parents, next;
  std::ranges::generate(ids, word);
  const auto state = model.start({ids, offsets});
  for (int32_t b = 0; b < n[0]; ++b) parents.insert(parents.end(), kBeam, b);
  for (int64_t step = 0; step < n[2]; ++step) {
    model.reorder(*state, parents);
    next.resize(parents.size());
    std::ranges::generate(next, word);
    t.expect_numbers("scores", model.step(*state, next).values());
    for (size_t r = 0; r < parents.size(); ++r)
      parents[r] = static_cast<int32_t>(r / kBeam * kBeam + t.random().below(kBeam));
    if (step + 2 == n[2]) parents.erase(parents.begin());
  }
}

// Two searches of the same model that alternate their steps.
void decode_concurrently(Trial& t, const Sizes& n) {
  const Decodable& model = *t.model(config_of(n)).as<Decodable>();
  const auto words = [&](int64_t count) {
    std::vector<int32_t> ids(static_cast<size_t>(count));
    std::ranges::generate(ids, [&] { return static_cast<int32_t>(3 + t.random().below(37)); });
    return ids;
  };
  std::unique_ptr<DecoderState> states[2];
  for (auto& state : states) {
    const std::vector<int32_t> offsets = Trial::offsets(t.lengths(n[0], n[1])),
                               source = words(offsets.back());
    state = model.start({source, offsets});
  }
  for (int64_t step = 0; step < n[2]; ++step) {
    const Tensor one = model.step(*states[0], words(n[0])),
                 other = model.step(*states[1], words(n[0]));
    t.expect_numbers("one", one.values());
    t.expect_numbers("other", other.values());
  }
}

// The results of a search. A GPU runs the search itself where it can (Note [Ahead]); then the host
// checks every step.
void expect_search(Trial& t, const Sizes& n) {
  ModelConfig config = config_of({n[0], n[1], 20, n[3]});
  config.source_words = config.target_words = 8;  // so that </s> is often among the best
  const Model& model = t.model(config);
  const std::vector<int32_t> offsets = Trial::offsets(t.lengths(n[0], n[1]));
  std::vector<int32_t> ids(static_cast<size_t>(offsets.back()));
  std::ranges::generate(ids, [&] { return static_cast<int32_t>(3 + t.random().below(5)); });
  std::vector<int64_t> numbers(static_cast<size_t>(n[0]));
  std::iota(numbers.begin(), numbers.end(), 0);
  SearchOptions options{.beam = n[2], .n_best = 1 + t.number() % n[2]};
  options.length_penalty = std::array{0.6, 0.0, 1.5, -0.7}[static_cast<size_t>(t.number() % 4)];
  options.allow_unknown = t.number() % 3 == 0;
  options.early_stop = t.number() % 5 != 1;
  options.max_length_factor = 1 + static_cast<double>(t.number() % 2);
  if (t.number() % 7 == 0) options.max_length = 1;
  const Model* const models[] = {&model};
  if (t.device() != Device{Cpu{}} && n[2] <= kMostSteered) {
    const BeamRules rules{n[2], 1, 8, 2, {}, 1, true, std::vector<int32_t>(numbers.size(), 9)};
    const auto* const device = model.as<DeviceDecodable>();
    ASSERT_TRUE(device);
    device->start_device_search(*model.as<Decodable>()->start({ids, offsets}), rules);
  }
  SearchOptions given_up{.beam = 1 + n[2] / 2};
  given_up.each_step = [left = 3](int64_t, const Beam&) mutable {
    if (--left == 0) throw std::runtime_error("enough");
  };
  try {  // the next search must cope with the state that this one leaves
    search(models, {ids, offsets}, numbers, given_up);
  } catch (const std::runtime_error&) {
  }
  std::vector<double> words, scores;
  for (const auto& list : search(models, {ids, offsets}, numbers, options))
    for (const Hypothesis& h : list) {
      words.insert(words.end(), h.words.begin(), h.words.end());
      scores.push_back(h.score);
    }
  t.expect_numbers("words", words);
  t.expect_numbers("scores", scores);
}

TEST(Parity, Decoding) {
  Family family("decoding");
  family.check_forward("many words, one by one", Bar::products, kDecodings,
                       [](Trial& t, const Sizes& n) { decode(t, n, config_of(n)); });
  family.check_forward("relative positions", Bar::products, kDecodings,
                       [](Trial& t, const Sizes& n) {
                         ModelConfig config = config_of(n);
                         transformer_of(config).positions = Positions::relative;
                         decode(t, n, config);
                       });
  family.check_forward("recurrent units", Bar::products, kDecodings, [](Trial& t, const Sizes& n) {
    ModelConfig config = config_of(n);
    transformer_of(config).decoder_layer = DecoderLayerType::ssru;
    decode(t, n, config);
  });
  const Shapes beams{.largest = {3, 5, 4, 3},
                     .large = {{66, 9, 4, 4}, {70, 40, 3, 2}, {65, 5, 3, 3}, {65, 5, 3, 5}},
                     .few = 3};
  family.check_forward("with beams", Bar::products, beams, decode_with_beams);
  const Shapes two{.largest = {3, 5, 4, 3}, .few = 2};
  family.check_forward("two searches at once", Bar::products, two, decode_concurrently);
  const Shapes searches{.largest = {5, 7, 6, 3},
                        .large = {{150, 6, 4, 2}, {20, 5, 32, 1}, {3, 5, 33, 1}, {600, 3, 1, 2}}};
  family.check_forward("searches", Bar::choices, searches, expect_search);
}

}  // namespace
}  // namespace fovea::parity

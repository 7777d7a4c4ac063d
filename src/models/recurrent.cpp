#include "models/recurrent.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attention/hard_sample.h"
#include "models/encoder_sizes.h"
#include "models/filling.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/recurrent_linear.h"
#include "ops/shape.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// The first `count` rows; where these are all, x itself.
Tensor first_rows(const Tensor& x, int64_t count) {
  return !x || x.rows() == count ? x : rows(x, 0, count);
}

// A step takes the first rows of a state itself.
DecoderRows first_rows(const DecoderRows& from, int64_t count) {
  return {from.states, first_rows(from.fed, count), first_rows(from.before, count)};
}

// values[i] for each i of the index.
std::vector<int32_t> at_each(std::span<const int32_t> index, std::span<const int32_t> values) {
  std::vector<int32_t> taken;
  for (const int32_t i : index) taken.push_back(values[static_cast<size_t>(i)]);
  return taken;
}

}  // namespace

RecurrentModel::RecurrentModel(const ModelConfig& c, Type type, Device device)
    : Model(type, device), config_(c),
      E_source(
          store_.declare("source/E", {c.source_words, c.embedding_size()},
                         Init::normal(1 / std::sqrt(static_cast<double>(c.embedding_size()))))),
      E_target(c.tied == Tied::all
                   ? E_source
                   : store_.declare(
                         "target/E", {c.target_words, c.embedding_size()},
                         Init::normal(1 / std::sqrt(static_cast<double>(c.embedding_size()))))),
      encoder(Scope{store_, "encoder"}, encoder_sizes(c)) {
  const Scope scope{store_, "decoder"};
  const int64_t D = c.annotation_size(), E = c.embedding_size(), n = c.size;
  const int64_t wide = state_width(c.cell, n), last = state_width(c.cell, D);
  const bool bahdanau = c.decoder == Decoder::bahdanau && c.attention.attends();
  const int64_t from = bahdanau ? D / encoder.directions : last;
  for (int64_t l = 0; l < c.decoder_layers; ++l) {
    if (bahdanau || D != n)
      W_s.push_back(scope.declare("W_s" + std::to_string(l), {wide, from}, Init::glorot(from, n)));
    decoder.emplace_back(scope / l, RecurrentCell::Sizes{c.cell, l == 0 ? E : n, n});
  }
  const int64_t out = c.readout_size();
  if (c.attention.attends()) {
    attend = make_attention(scope / "attend", c.attention, c.attention_sizes());
    if (feeds_back()) {
      const int64_t back = bahdanau ? D : out;
      C = scope.declare("C", {gates(c.cell) * n, back}, Init::glorot(back, n));
    }
    const int64_t joined = bahdanau ? n + E + D : D + n;
    W_r = scope.declare(bahdanau ? "W_r" : "W_c", {out, joined}, Init::glorot(joined, out));
  }
  W_o = c.tied == Tied::none
            ? store_.declare("output/W", {c.target_words, out}, Init::glorot(out, c.target_words))
            : E_target;
  b_o = store_.declare("output/b", {c.target_words}, Init::constant(0));
  if (c.attention.kind == "hard-sample")
    baseline = store_.declare("decoder/attend/baseline", {1}, Init::constant(0));
}

bool RecurrentModel::feeds_back() const {
  return attend && (config_.decoder == Decoder::bahdanau || config_.input_feeding);
}

Tensor RecurrentModel::embed_words(const Tensor& E, const Tensor& ids) const {
  return embed(E, {}, {ids, {}, 1, dropout_key(config_.dropout)});
}

RecurrentModel::Encoded RecurrentModel::encode(const Source& source) const {
  const auto read = encoder(embed_words(E_source, source.words), source.order);
  std::vector<Tensor> last;
  for (const Tensor& state : read.last) last.push_back(rows_at(state, source.places));
  Encoded encoded{{}, first_states(last)};
  if (attend) {
    const Tensor h = dropped(read.h, dropout_key(config_.dropout));
    encoded.memory = attend->remember(rows_at(h, source.remembered), source.sentences);
  }
  return encoded;
}

std::vector<Tensor> RecurrentModel::first_states(const std::vector<Tensor>& last) const {
  const bool bahdanau = config_.decoder == Decoder::bahdanau && attend;
  const auto ways = static_cast<size_t>(encoder.directions);
  std::vector<Tensor> states;
  for (size_t l = 0; l < decoder.size(); ++l) {
    const size_t of = bahdanau ? last.size() / ways - 1 : std::min(l, last.size() / ways - 1);
    const Tensor& first = last[of * ways];
    const Tensor& back = last[of * ways + ways - 1];
    if (bahdanau) {  // s_0 = tanh(W_s ←h_1)
      states.push_back(tanh(linear(encoder.layers.back().cell.h(back), W_s[l])));
      continue;
    }
    Tensor joined = first;  // [→h_S ; ←h_1], and the same of c
    if (ways == 2 && config_.cell == Cell::lstm) {
      const int64_t H = first.cols() / 2;
      joined = side_by_side(
          {columns(first, 0, H), columns(back, 0, H), columns(first, H, H), columns(back, H, H)});
    } else if (ways == 2) {
      joined = concat(first, back);
    }
    states.push_back(W_s.empty() ? joined : tanh(linear(joined, W_s[l])));
  }
  return states;
}

std::vector<Tensor> RecurrentModel::advance_states(Tensor x,
                                                   const std::vector<Tensor>& before) const {
  std::vector<Tensor> states;
  for (size_t l = 0; l < decoder.size(); ++l) {
    if (l > 0) {
      const Tensor below = decoder[l - 1].h(states.back());
      x = step_linear(dropped(below, dropout_key(config_.dropout)), decoder[l].W, decoder[l].b);
    }
    states.push_back(recurrent_step(decoder[l].recurrent(), x, before[l]));
  }
  return states;
}

// x is W E y_{t−1} + b in the rows from `first` on; rows of `all` that have no sentence are over.
RecurrentModel::Stepped RecurrentModel::advance(const Tensor& x, int64_t first,
                                                const DecoderRows& all, const Memory& memory,
                                                const Tensor& sentence) const {
  Stepped step;
  const int64_t alive = sentence.elements();
  const DecoderRows before = first_rows(all, alive);
  if (attend && config_.decoder == Decoder::bahdanau) {
    const Tensor s = first_rows(decoder.back().h(before.states.back()), alive);
    step.attended = attend->attend({s, sentence}, memory, before.before);  // α from s_{t−1}
    step.c = step.attended.context;
    const Tensor in = step_linear_onto(x, first, step.c, C);
    step.rows.states = advance_states(in, before.states);  // s_t = f(s_{t−1}, [E y; c_t])
    step.s = decoder.back().h(step.rows.states.back());
  } else {
    const Tensor in =
        before.fed ? step_linear_onto(x, first, before.fed, C) : rows(x, first, alive);
    step.rows.states = advance_states(in, before.states);  // s_t = f(s_{t−1}, [E y; h̃])
    step.s = decoder.back().h(step.rows.states.back());
    if (attend) {
      step.attended = attend->attend({step.s, sentence}, memory, before.before);  // α from s_t
      step.c = step.attended.context;
    }
  }
  step.rows.before = step.attended.now;
  return step;
}

Tensor RecurrentModel::readout(const Tensor& s, const Tensor& y, const Tensor& c) const {
  if (!attend) return s;
  if (config_.decoder == Decoder::bahdanau)
    return tanh(linear(side_by_side({s, y, c}), W_r));  // tanh(W_r [s_t; E y_{t−1}; c_t])
  return tanh(step_linear(concat(c, s), W_r));          // h̃_t = tanh(W_c [c_t; s_t])
}

DecoderRows RecurrentModel::first(const Encoded& source, const Tensor& sentence) const {
  DecoderRows rows;
  for (const Tensor& state : source.states) rows.states.push_back(rows_at(state, sentence));
  if (feeds_back() && config_.decoder == Decoder::luong)  // h̃_0 = 0
    rows.fed = Tensor::zeros({sentence.elements(), config_.readout_size()}, store_.type(),
                             store_.device());
  return rows;
}

RecurrentModel::Target RecurrentModel::Target::of(const Tokens& sentences, Device device) {
  TimeMajor order = TimeMajor::of(sentences.offsets, device);
  return {Tensor::of(at_each(order.words, sentences.ids), device), order,
          Tensor::of(order.order, device)};
}

RecurrentModel::Decoded RecurrentModel::decode(const Encoded& source, const Target& target) const {
  const Tensor y = embed_words(E_target, target.words);
  const TimeMajor& order = target.order;
  if (!feeds_back()) return decode_at_once(y, source, target);
  const bool luong = config_.decoder == Decoder::luong;
  const Tensor x = linear(y, decoder[0].W, decoder[0].b);  // of all words at once
  DecoderRows now = first(source, target.sentence);
  Decoded out;
  std::vector<Tensor>& s = out.s;
  std::vector<Tensor> c, h;
  for (int64_t t = 0; t < order.times(); ++t) {
    const int64_t alive = order.alive(t);
    Stepped step = advance(x, order.first[t], now, source.memory, target.sentence.window(0, alive));
    s.push_back(step.s);
    if (luong) {
      h.push_back(readout(step.s, {}, step.c));
      step.rows.fed = h.back();
    } else {
      c.push_back(step.c);
    }
    out.attended.push_back(std::move(step.attended));
    now = std::move(step.rows);
  }
  out.readout = luong ? below_each_other(h) : readout(below_each_other(s), y, below_each_other(c));
  return out;
}

// Where nothing that is attended to enters the next state, whole layers run before attention does.
RecurrentModel::Decoded RecurrentModel::decode_at_once(const Tensor& y, const Encoded& source,
                                                       const Target& target) const {
  const TimeMajor& order = target.order;
  Tensor s = y;
  for (size_t l = 0; l < decoder.size(); ++l) {
    if (l > 0) s = dropped(s, dropout_key(config_.dropout));
    const RecurrentLayer layer{decoder[l], Direction::forward};
    s = decoder[l].h(layer(s, rows_at(source.states[l], target.sentence), order));
  }
  if (!attend) return {s, {}, {s}};
  Decoded out;
  out.s = {s};
  std::vector<Tensor> c;
  Before before;
  for (int64_t t = 0; t < order.times(); ++t) {
    const int64_t alive = order.alive(t);
    const Query query{rows(s, order.first[t], alive), target.sentence.window(0, alive)};
    out.attended.push_back(attend->attend(query, source.memory, first_rows(before, alive)));
    before = out.attended.back().now;
    c.push_back(out.attended.back().context);
  }
  out.readout = readout(s, y, below_each_other(c));
  return out;
}

namespace {

// Note [Rows of eight]
// While training, sentences of like length are filled up to the longest of eight, and sentences of
// padding are added until there is a multiple of eight: products then come in few sizes, and each
// size is prepared once. The output layer reads the words alone, and then padding up to a multiple
// of eight; its labels are none, so no gradient comes from it. Where steps are replayed (Note
// [Filling]), all sentences are as long as the longest, those of the source too.
constexpr size_t kRows = 8;
constexpr int32_t kTimes = 4;  // where all are as long: a multiple of

// Sentences one after another as the network will see them.
struct Laid {
  std::vector<int32_t> ids, offsets{0};
  std::vector<int32_t> lengths;  // of each sentence without what fills it up
  std::vector<int32_t> places;   // of the words that are no padding, among ids

  Laid(const Tokens& in, Fill fill) {
    const auto count = static_cast<size_t>(in.sentences());
    for (size_t b = 0; b < count; ++b) lengths.push_back(in.offsets[b + 1] - in.offsets[b]);
    const std::vector<int32_t> filled = fill == Fill::nothing  ? lengths
                                        : fill == Fill::blocks ? in_eights(lengths)
                                                               : all_as_long(lengths);
    for (size_t b = 0; b < filled.size(); ++b) {
      const auto at = static_cast<int32_t>(ids.size());
      for (int32_t j = 0; b < count && j < lengths[b]; ++j) {
        const auto from = static_cast<size_t>(in.offsets[b] + j);
        places.push_back(at + j);
        ids.push_back(in.ids[from]);
      }
      ids.resize(static_cast<size_t>(at + filled[b]), 0);
      offsets.push_back(static_cast<int32_t>(ids.size()));
    }
    lengths.insert(lengths.end(), filled.begin() + std::ssize(lengths), filled.end());
  }

  // Where the words stand among the rows of all times.
  std::vector<int32_t> rows(const TimeMajor& order) const {
    std::vector<int32_t> to(order.words.size());
    for (size_t row = 0; row < to.size(); ++row)
      to[static_cast<size_t>(order.words[row])] = static_cast<int32_t>(row);
    return at_each(places, to);
  }

 private:
  static std::vector<int32_t> in_eights(std::vector<int32_t> lengths) {
    std::vector<size_t> order(lengths.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
    for (size_t i = 0; i < order.size(); ++i) lengths[order[i]] = lengths[order[i / kRows * kRows]];
    while (lengths.size() % kRows != 0) lengths.push_back(lengths[order.back()]);
    return lengths;
  }
  static std::vector<int32_t> all_as_long(const std::vector<int32_t>& lengths) {
    const int64_t count = std::ssize(lengths);
    const int64_t whole = round_up(count, grain_of(Fill::few_sizes, 1, count).sentences);
    const auto longest = static_cast<int32_t>(round_up(std::ranges::max(lengths), kTimes));
    return std::vector<int32_t>(static_cast<size_t>(whole), longest);
  }
};

struct PreparedSequences : Prepared {
  RecurrentModel::Source source;
  RecurrentModel::Taught taught;
};

}  // namespace

RecurrentModel::Source RecurrentModel::Source::of(const Tokens& in, Fill fill, Device device) {
  const bool filled = fill == Fill::few_sizes;
  const Laid laid(in, filled ? fill : Fill::nothing);
  Source source;
  source.order = filled ? TimeMajor::filled(laid.offsets, laid.lengths, device)
                        : TimeMajor::of(laid.offsets, device);
  source.words = Tensor::of(at_each(source.order.words, laid.ids), device);
  std::vector<int32_t> places(source.order.order.size());
  for (size_t i = 0; i < places.size(); ++i)
    places[static_cast<size_t>(source.order.order[i])] = static_cast<int32_t>(i);
  source.places = Tensor::of(places, device);

  const std::vector<int32_t> rows = laid.rows(source.order);
  Filled memory({rows, in.offsets});
  if (filled) fovea::fill(memory, fill, memory.words());
  source.sentences = Packing::of(memory.offsets, device);
  source.sentences.longest = memory.longest;
  source.remembered = Tensor::of(memory.ids, device);
  return source;
}

RecurrentModel::Taught RecurrentModel::Taught::of(const Lesson& lesson, Fill fill, Device device) {
  const Laid laid(lesson.target_in, fill);
  Taught taught{Target::of({laid.ids, laid.offsets}, device), {}, {}, {}};
  std::vector<int32_t> sentence = taught.target.order.order;
  for (int32_t& b : sentence)  // padding reads the first sentence
    if (b >= lesson.target_in.sentences()) b = 0;
  taught.target.sentence = Tensor::of(sentence, device);

  taught.rows = laid.rows(taught.target.order);
  std::vector<int32_t> read = taught.rows;
  std::vector<int32_t> labels(lesson.target_out.begin(), lesson.target_out.end());
  const int64_t words = std::ssize(read);
  const int64_t block = fill == Fill::nothing  ? 1
                        : fill == Fill::blocks ? static_cast<int64_t>(kRows)
                                               : grain_of(fill, words, 1).words;
  read.resize(static_cast<size_t>(round_up(words, block)), 0);
  labels.resize(read.size(), -1);
  taught.read = Tensor::of(read, device);
  taught.labels = Tensor::of(labels, device);
  return taught;
}

std::unique_ptr<Prepared> RecurrentModel::prepare(const Lesson& lesson, Fill fill) const {
  auto made = std::make_unique<PreparedSequences>();
  made->source = Source::of(lesson.source, fill, store_.device());
  made->taught = Taught::of(lesson, fill, store_.device());
  made->sizes = made->source.order.first;
  const std::vector<int64_t>& times = made->taught.target.order.first;
  made->sizes.insert(made->sizes.end(), times.begin(), times.end());
  made->sizes.push_back(made->source.sentences.longest);
  made->scores = made->taught.read.elements();
  return made;
}

BatchLoss RecurrentModel::loss_of(const Prepared& lesson, double label_smoothing, double) const {
  const auto& in = dynamic_cast<const PreparedSequences&>(lesson);
  return loss_after(encode(in.source), in.taught, label_smoothing);
}

BatchLoss RecurrentModel::loss(const Tokens& source, const Tokens& target_in,
                               std::span<const int32_t> target_out, double label_smoothing) const {
  return loss_after(encode(source), target_in, target_out, label_smoothing);
}

BatchLoss RecurrentModel::loss_after(const Encoded& source, const Tokens& target_in,
                                     std::span<const int32_t> target_out,
                                     double label_smoothing) const {
  const Fill fill = Tape::live() ? Fill::blocks : Fill::nothing;
  const Taught taught = Taught::of({{}, target_in, target_out}, fill, store_.device());
  BatchLoss result = loss_after(source, taught, label_smoothing);
  result.log_likelihood = result.log_likelihood.window(0, std::ssize(taught.rows));
  return result;
}

BatchLoss RecurrentModel::loss_after(const Encoded& source, const Taught& taught,
                                     double label_smoothing) const {
  const Decoded decoded = decode(source, taught.target);
  const Tensor h = rows_at(decoded.readout, taught.read);
  const CrossEntropy out = output_loss(dropped(h, dropout_key(config_.dropout)), W_o, b_o,
                                       taught.labels, label_smoothing);
  const Tensor scores = out.log_likelihood.window(0, std::ssize(taught.rows));
  return {out.loss, out.log_likelihood,
          surrogate(decoded, taught.target.order, taught.rows, scores)};
}

// The reward of a choice is Σ log p of the words from its own on, those further away discounted:
// what came before it does not hang on it. Each word's log p is compared with the running mean.
Tensor RecurrentModel::surrogate(const Decoded& decoded, const TimeMajor& order,
                                 std::span<const int32_t> rows, const Tensor& scores) const {
  if (!Tape::live() || decoded.attended.empty() || !decoded.attended[0].log_choice) return {};
  const std::vector<double> found = scores.values();
  const double b = baseline.values()[0], words = static_cast<double>(rows.size());
  const double all = std::accumulate(found.begin(), found.end(), 0.0);
  const auto tokens = static_cast<size_t>(order.tokens());
  std::vector<double> gain(static_cast<size_t>(order.sentences()), 0), score(tokens, 0),
      kept = score, advantage = score;
  for (size_t k = 0; k < rows.size(); ++k) {
    score[static_cast<size_t>(rows[k])] = found[k];
    kept[static_cast<size_t>(rows[k])] = 1;
  }
  const AttentionConfig& a = config_.attention;
  for (int64_t t = order.times() - 1; t >= 0; --t)
    for (int64_t i = 0; i < order.alive(t); ++i) {
      const auto row = static_cast<size_t>(order.first[t] + i);
      double& from_here = gain[static_cast<size_t>(i)];
      from_here = kept[row] * (score[row] - b) + a.reward_discount * from_here;
      advantage[row] = kept[row] * from_here;
    }
  std::vector<Tensor> log_choice, entropy;
  for (const Attended& step : decoded.attended) {
    log_choice.push_back(step.log_choice);
    entropy.push_back(step.entropy);
  }
  const Shape column{order.tokens(), 1};
  // In a training step, not a check of gradients; a batch that is not finite will be left out.
  if (dropout_key(1).on() && std::isfinite(all))
    baseline.assign(std::vector<double>{next_baseline(b, all / words, a.baseline_decay)});
  return surrogate_loss(
      below_each_other(log_choice),
      below_each_other(entropy) * Tensor::of(column, kept, store_.type(), store_.device()),
      Tensor::of(column, advantage, store_.type(), store_.device()), {a.lambda_r, a.lambda_e, 0},
      1);
}

}  // namespace fovea

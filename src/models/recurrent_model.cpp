#include "models/recurrent_model.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "attention/hard_sample.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/recurrent_linear.h"
#include "ops/shape.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// The first `count` rows of x. If x is absent or has exactly `count` rows, x itself.
Tensor first_rows(const Tensor& x, int64_t count) {
  return !x || x.rows() == count ? x : rows(x, 0, count);
}

// The recurrent states keep all their rows, because recurrent_step() reads only the first rows.
DecoderRows first_rows(const DecoderRows& rows, int64_t count) {
  return {rows.states, first_rows(rows.fed, count), first_rows(rows.attention, count)};
}

// Returns values[i] for each i in `index`.
std::vector<int32_t> gathered(std::span<const int32_t> index, std::span<const int32_t> values) {
  std::vector<int32_t> result;
  for (const int32_t i : index) result.push_back(values[static_cast<size_t>(i)]);
  return result;
}

}  // namespace

RecurrentModel::RecurrentModel(const ModelShape& m, const RecurrentConfig& c, ElementType type,
                               Device device)
    : Model(type, device, m), config_(c),
      E_source(store_.declare_words("source/E", m.source_words, c.embedding_size(m))),
      E_target(m.tied == TiedEmbeddings::all
                   ? E_source
                   : store_.declare_words("target/E", m.target_words, c.embedding_size(m))),
      encoder(ParameterScope{store_, "encoder"}, c.sizes(m)) {
  const ParameterScope scope{store_, "decoder"};
  const int64_t D = c.annotation_size(m), E = c.embedding_size(m), n = m.size;
  const int64_t wide = state_width(c.cell, n), last = state_width(c.cell, D);
  const bool bahdanau = c.decoder == DecoderForm::bahdanau && c.attention.attends();
  const int64_t from = !bahdanau ? last : starts_from_context() ? D : D / encoder.directions;
  for (int64_t l = 0; l < m.decoder_layers; ++l) {
    if (bahdanau || D != n)
      W_s.push_back(
          scope.declare("W_s" + std::to_string(l), {wide, from}, ParameterInit::glorot(from, n)));
    decoder.emplace_back(scope / l, RecurrentCell::Sizes{c.cell, l == 0 ? E : n, n});
  }
  const int64_t out = c.readout_size(m);
  if (c.attention.attends()) {
    attend = make_attention(scope / "attend", c.attention, c.attention_sizes(m));
    if (feeds_back()) {
      const int64_t back = bahdanau ? D : out;
      C = scope.declare("C", {gates(c.cell) * n, back}, ParameterInit::glorot(back, n));
    }
    const int64_t joined = bahdanau ? n + E + D : D + n;
    W_r =
        scope.declare(bahdanau ? "W_r" : "W_c", {out, joined}, ParameterInit::glorot(joined, out));
  }
  W_o = m.tied == TiedEmbeddings::none ? store_.declare("output/W", {m.target_words, out},
                                                        ParameterInit::glorot(out, m.target_words))
                                       : E_target;
  b_o = store_.declare("output/b", {m.target_words}, ParameterInit::constant(0));
  if (c.attention.kind == "hard-sample")
    baseline = store_.declare("decoder/attend/baseline", {1}, ParameterInit::constant(0));
}

bool RecurrentModel::starts_from_context() const {
  const AttentionMechanism* mechanism = find_mechanism(config_.attention.kind);
  return config_.decoder == DecoderForm::bahdanau &&
         mechanism->first_state == AttentionMechanism::FirstState::context;
}

bool RecurrentModel::feeds_back() const {
  return attend && (config_.decoder == DecoderForm::bahdanau || config_.input_feeding);
}

Tensor RecurrentModel::embed_words(const Tensor& E, const Tensor& ids) const {
  return embed(E, {}, {ids, {}, 1, dropout_key(shape_.dropout)});
}

RecurrentModel::EncoderOutput RecurrentModel::encode(const Source& source) const {
  const auto read = encoder(embed_words(E_source, source.words), source.order);
  std::vector<Tensor> last;
  for (const Tensor& state : read.last) last.push_back(rows_at(state, source.sorted_positions));
  EncoderOutput encoded{{}, {}};
  if (!starts_from_context()) encoded.states = first_states(last);
  if (attend) {
    const Tensor h = dropped(read.h, dropout_key(shape_.dropout));
    encoded.memory = attend->remember(rows_at(h, source.memory_rows), source.sentences);
  }
  return encoded;
}

std::vector<Tensor> RecurrentModel::first_states(const std::vector<Tensor>& last) const {
  const bool bahdanau = config_.decoder == DecoderForm::bahdanau && attend;
  const auto directions = static_cast<size_t>(encoder.directions);
  std::vector<Tensor> states;
  for (size_t l = 0; l < decoder.size(); ++l) {
    const size_t top = last.size() / directions - 1, layer = bahdanau ? top : std::min(l, top);
    const Tensor& forward = last[layer * directions];
    const Tensor& backward = last[layer * directions + directions - 1];
    if (bahdanau) {  // s_0 = tanh(W_s ←h_1)
      states.push_back(tanh(linear(encoder.layers.back().cell.h(backward), W_s[l])));
      continue;
    }
    Tensor joined = forward;  // [→h_S ; ←h_1], the same order for the LSTM's c
    if (directions == 2 && config_.cell == Cell::lstm) {
      const int64_t H = forward.cols() / 2;
      joined = concat_columns({columns(forward, 0, H), columns(backward, 0, H),
                               columns(forward, H, H), columns(backward, H, H)});
    } else if (directions == 2) {
      joined = concat(forward, backward);
    }
    states.push_back(W_s.empty() ? joined : tanh(linear(joined, W_s[l])));
  }
  return states;
}

std::vector<Tensor> RecurrentModel::advance_states(Tensor x,
                                                   const std::vector<Tensor>& previous) const {
  std::vector<Tensor> states;
  for (size_t l = 0; l < decoder.size(); ++l) {
    if (l > 0) {
      const Tensor below = decoder[l - 1].h(states.back());
      x = step_linear(dropped(below, dropout_key(shape_.dropout)), decoder[l].W, decoder[l].b);
    }
    states.push_back(recurrent_step(decoder[l].recurrent(), x, previous[l]));
  }
  return states;
}

// Computes one decoder step for the active rows, whose sentences have not ended. For active row i,
// row first + i of x is W E y_{t−1} + b, and sentence[i] is the source sentence. `all` holds the
// previous states of all rows; the active rows are first.
RecurrentModel::StepResult RecurrentModel::advance(const Tensor& x, int64_t first,
                                                   const DecoderRows& all,
                                                   const SourceMemory& memory,
                                                   const Tensor& sentence) const {
  StepResult step;
  const int64_t alive = sentence.elements();
  const DecoderRows previous = first_rows(all, alive);
  if (attend && config_.decoder == DecoderForm::bahdanau) {
    const Tensor s = first_rows(decoder.back().h(previous.states.back()), alive);
    step.attended = attend->attend({s, sentence}, memory, previous.attention);  // α from s_{t−1}
    step.c = step.attended.context;
    const Tensor in = step_linear_onto(x, first, step.c, C);
    step.rows.states = advance_states(in, previous.states);  // s_t = f(s_{t−1}, [E y; c_t])
    step.s = decoder.back().h(step.rows.states.back());
  } else {
    const Tensor in =
        previous.fed ? step_linear_onto(x, first, previous.fed, C) : rows(x, first, alive);
    step.rows.states = advance_states(in, previous.states);  // s_t = f(s_{t−1}, [E y; h̃])
    step.s = decoder.back().h(step.rows.states.back());
    if (attend) {
      step.attended = attend->attend({step.s, sentence}, memory, previous.attention);  // α from s_t
      step.c = step.attended.context;
    }
  }
  step.rows.attention = step.attended.now;
  return step;
}

Tensor RecurrentModel::readout(const Tensor& s, const Tensor& y, const Tensor& c) const {
  if (!attend) return s;
  if (config_.decoder == DecoderForm::bahdanau)
    return tanh(linear(concat_columns({s, y, c}), W_r));  // tanh(W_r [s_t; E y_{t−1}; c_t])
  return tanh(step_linear(concat(c, s), W_r));            // h̃_t = tanh(W_c [c_t; s_t])
}

DecoderRows RecurrentModel::first(const EncoderOutput& source, const Tensor& sentence) const {
  DecoderRows rows;
  for (const Tensor& state : source.states) rows.states.push_back(rows_at(state, sentence));
  if (attend) rows.attention = attend->start(source.memory, sentence);
  for (size_t l = 0; starts_from_context() && l < decoder.size(); ++l)
    rows.states.push_back(tanh(linear(rows.attention["context"], W_s[l])));  // s_0 = tanh(W_s c)
  if (feeds_back() && config_.decoder == DecoderForm::luong)                 // h̃_0 = 0
    rows.fed = Tensor::zeros({sentence.elements(), config_.readout_size(shape_)}, store_.type(),
                             store_.device());
  return rows;
}

RecurrentModel::Target RecurrentModel::Target::of(const TokenBatch& sentences, Device device) {
  TimeMajor order = TimeMajor::of(sentences.offsets, device);
  return {Tensor::of(gathered(order.words, sentences.ids), device), order,
          Tensor::of(order.order, device)};
}

RecurrentModel::DecoderOutput RecurrentModel::decode(const EncoderOutput& source,
                                                     const Target& target) const {
  const Tensor y = embed_words(E_target, target.words);
  const TimeMajor& order = target.order;
  if (!feeds_back()) return decode_at_once(y, source, target);
  const bool luong = config_.decoder == DecoderForm::luong;
  const Tensor x = linear(y, decoder[0].W, decoder[0].b);  // computed for all words at once
  DecoderRows now = first(source, target.sentence);
  DecoderOutput out;
  std::vector<Tensor>& s = out.s;
  std::vector<Tensor> c, h;
  for (int64_t t = 0; t < order.times(); ++t) {
    const int64_t alive = order.alive(t);
    StepResult step =
        advance(x, order.first[t], now, source.memory, target.sentence.window(0, alive));
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
  out.readout = luong ? concat_rows(h) : readout(concat_rows(s), y, concat_rows(c));
  return out;
}

// Runs the decoder if its next state does not depend on the attention. Then each layer runs over
// all words at once, and attention runs after them.
RecurrentModel::DecoderOutput RecurrentModel::decode_at_once(const Tensor& y,
                                                             const EncoderOutput& source,
                                                             const Target& target) const {
  const TimeMajor& order = target.order;
  Tensor s = y;
  for (size_t l = 0; l < decoder.size(); ++l) {
    if (l > 0) s = dropped(s, dropout_key(shape_.dropout));
    const RecurrentLayer layer{decoder[l], Direction::forward};
    s = decoder[l].h(layer(s, rows_at(source.states[l], target.sentence), order));
  }
  if (!attend) return {s, {}, {s}};
  DecoderOutput out;
  out.s = {s};
  std::vector<Tensor> c;
  AttentionState previous = attend->start(source.memory, target.sentence);
  for (int64_t t = 0; t < order.times(); ++t) {
    const int64_t alive = order.alive(t);
    const AttentionQuery query{rows(s, order.first[t], alive), target.sentence.window(0, alive)};
    out.attended.push_back(attend->attend(query, source.memory, first_rows(previous, alive)));
    previous = out.attended.back().now;
    c.push_back(out.attended.back().context);
  }
  out.readout = readout(s, y, concat_rows(c));
  return out;
}

namespace {

// Note [Rows of eight]
// In training, the target sentences are sorted by length, and each group of eight sentences is
// padded to the length of its longest. Sentences of padding fill up the last group. So products
// have few different sizes, and each size is prepared only once. The output layer reads only the
// rows of words, plus some rows up to a multiple of eight. Padding has no label, so it contributes
// no gradient. If steps are replayed as CUDA graphs (Note [Filling]), all sentences of the source
// and of the target are padded to the length of the longest.
constexpr size_t kRows = 8;
constexpr int32_t kTimes = 4;  // in replayed steps, a common length is a multiple of it

// The sentences of a batch, one after another, each followed by its padding.
struct PaddedLayout {
  std::vector<int32_t> ids, offsets{0};
  std::vector<int32_t> lengths;    // length of each sentence, without its padding
  std::vector<int32_t> positions;  // indices in `ids` of the words that are not padding

  PaddedLayout(const TokenBatch& in, BatchPadding padding) {
    const auto count = static_cast<size_t>(in.sentences());
    for (size_t b = 0; b < count; ++b) lengths.push_back(in.offsets[b + 1] - in.offsets[b]);
    const std::vector<int32_t> padded = padding == BatchPadding::nothing  ? lengths
                                        : padding == BatchPadding::blocks ? groups_of_eight(lengths)
                                                                          : equal_lengths(lengths);
    for (size_t b = 0; b < padded.size(); ++b) {
      const auto begin = static_cast<int32_t>(ids.size());
      for (int32_t j = 0; b < count && j < lengths[b]; ++j) {
        const auto from = static_cast<size_t>(in.offsets[b] + j);
        positions.push_back(begin + j);
        ids.push_back(in.ids[from]);
      }
      ids.resize(static_cast<size_t>(begin + padded[b]), 0);
      offsets.push_back(static_cast<int32_t>(ids.size()));
    }
    lengths.insert(lengths.end(), padded.begin() + std::ssize(lengths), padded.end());
  }

  // For each word that is not padding, its row in time-major order.
  std::vector<int32_t> rows(const TimeMajor& order) const {
    std::vector<int32_t> to(order.words.size());
    for (size_t row = 0; row < to.size(); ++row)
      to[static_cast<size_t>(order.words[row])] = static_cast<int32_t>(row);
    return gathered(positions, to);
  }

 private:
  static std::vector<int32_t> groups_of_eight(std::vector<int32_t> lengths) {
    std::vector<size_t> order(lengths.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
    for (size_t i = 0; i < order.size(); ++i) lengths[order[i]] = lengths[order[i / kRows * kRows]];
    while (lengths.size() % kRows != 0) lengths.push_back(lengths[order.back()]);
    return lengths;
  }
  static std::vector<int32_t> equal_lengths(const std::vector<int32_t>& lengths) {
    const int64_t count = std::ssize(lengths);
    const int64_t padded =
        round_up(count, padding_unit(BatchPadding::few_sizes, 1, count).sentences);
    const auto longest = static_cast<int32_t>(round_up(std::ranges::max(lengths), kTimes));
    return std::vector<int32_t>(static_cast<size_t>(padded), longest);
  }
};

// A batch that RecurrentModel::prepare() has prepared.
struct PreparedSequences : PreparedBatch {
  RecurrentModel::Source source;
  RecurrentModel::ForcedTarget target;
};

}  // namespace

RecurrentModel::Source RecurrentModel::Source::of(const TokenBatch& in, BatchPadding padding,
                                                  Device device) {
  const bool padded = padding == BatchPadding::few_sizes;
  const PaddedLayout layout(in, padded ? padding : BatchPadding::nothing);
  Source source;
  source.order = padded ? TimeMajor::filled(layout.offsets, layout.lengths, device)
                        : TimeMajor::of(layout.offsets, device);
  source.words = Tensor::of(gathered(source.order.words, layout.ids), device);
  std::vector<int32_t> positions(source.order.order.size());
  for (size_t i = 0; i < positions.size(); ++i)
    positions[static_cast<size_t>(source.order.order[i])] = static_cast<int32_t>(i);
  source.sorted_positions = Tensor::of(positions, device);

  const std::vector<int32_t> rows = layout.rows(source.order);
  PaddedSentences memory({rows, in.offsets});
  if (padded) fill(memory, padding, memory.words());
  source.sentences = SentenceOffsets::of(memory.offsets, device);
  source.sentences.longest = memory.longest;
  source.memory_rows = Tensor::of(memory.ids, device);
  return source;
}

RecurrentModel::ForcedTarget RecurrentModel::ForcedTarget::of(const TrainingBatch& batch,
                                                              BatchPadding padding, Device device) {
  const PaddedLayout layout(batch.target_in, padding);
  ForcedTarget forced{Target::of({layout.ids, layout.offsets}, device), {}, {}, {}};
  std::vector<int32_t> sentence = forced.target.order.order;
  for (int32_t& b : sentence)  // sentences of padding attend to source sentence 0
    if (b >= batch.target_in.sentences()) b = 0;
  forced.target.sentence = Tensor::of(sentence, device);

  forced.rows = layout.rows(forced.target.order);
  std::vector<int32_t> read = forced.rows;
  std::vector<int32_t> labels(batch.target_out.begin(), batch.target_out.end());
  const int64_t words = std::ssize(read);
  const int64_t block = padding == BatchPadding::nothing  ? 1
                        : padding == BatchPadding::blocks ? static_cast<int64_t>(kRows)
                                                          : padding_unit(padding, words, 1).words;
  read.resize(static_cast<size_t>(round_up(words, block)), 0);
  labels.resize(read.size(), -1);
  forced.read = Tensor::of(read, device);
  forced.labels = Tensor::of(labels, device);
  return forced;
}

std::unique_ptr<PreparedBatch> RecurrentModel::prepare(const TrainingBatch& batch,
                                                       BatchPadding padding) const {
  auto prepared = std::make_unique<PreparedSequences>();
  prepared->source = Source::of(batch.source, padding, store_.device());
  prepared->target = ForcedTarget::of(batch, padding, store_.device());
  prepared->sizes = prepared->source.order.first;
  const std::vector<int64_t>& times = prepared->target.target.order.first;
  prepared->sizes.insert(prepared->sizes.end(), times.begin(), times.end());
  prepared->sizes.push_back(prepared->source.sentences.longest);
  prepared->scores = prepared->target.read.elements();
  return prepared;
}

BatchLoss RecurrentModel::loss_of(const PreparedBatch& batch, double label_smoothing,
                                  double) const {
  const auto& in = dynamic_cast<const PreparedSequences&>(batch);
  return loss_after(encode(in.source), in.target, label_smoothing);
}

BatchLoss RecurrentModel::loss(const TrainingBatch& batch, double label_smoothing) const {
  assert(!batch.guidance);
  return loss_after(encode(batch.source), batch, label_smoothing);
}

BatchLoss RecurrentModel::loss_after(const EncoderOutput& source, const TrainingBatch& batch,
                                     double label_smoothing) const {
  const BatchPadding padding = Tape::live() ? BatchPadding::blocks : BatchPadding::nothing;
  const ForcedTarget forced = ForcedTarget::of(batch, padding, store_.device());
  BatchLoss result = loss_after(source, forced, label_smoothing);
  result.log_likelihood = result.log_likelihood.window(0, std::ssize(forced.rows));
  return result;
}

BatchLoss RecurrentModel::loss_after(const EncoderOutput& source, const ForcedTarget& forced,
                                     double label_smoothing) const {
  const DecoderOutput decoded = decode(source, forced.target);
  const Tensor h = rows_at(decoded.readout, forced.read);
  const CrossEntropy out = output_loss(dropped(h, dropout_key(shape_.dropout)), W_o, b_o,
                                       forced.labels, label_smoothing);
  const Tensor scores = out.log_likelihood.window(0, std::ssize(forced.rows));
  return {out.loss, out.log_likelihood,
          surrogate(decoded, forced.target.order, forced.rows, scores)};
}

// The surrogate loss of hard-sample attention. For other mechanisms, or if there is no tape,
// absent. The reward of the choice at step t is Σ_{u ≥ t} reward_discount^{u − t} (log p(y_u) − b),
// because earlier words do not depend on the choice. The baseline b is the running mean of log p
// per word.
Tensor RecurrentModel::surrogate(const DecoderOutput& decoded, const TimeMajor& order,
                                 std::span<const int32_t> rows, const Tensor& scores) const {
  if (!Tape::live() || decoded.attended.empty() || !decoded.attended[0].log_choice) return {};
  const std::vector<double> log_p = scores.values();
  const double b = baseline.values()[0], words = static_cast<double>(rows.size());
  const double total = std::accumulate(log_p.begin(), log_p.end(), 0.0);
  const auto tokens = static_cast<size_t>(order.tokens());
  std::vector<double> gain(static_cast<size_t>(order.sentences()), 0), score(tokens, 0),
      kept = score, advantage = score;
  for (size_t k = 0; k < rows.size(); ++k) {
    score[static_cast<size_t>(rows[k])] = log_p[k];
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
  for (const AttentionResult& step : decoded.attended) {
    log_choice.push_back(step.log_choice);
    entropy.push_back(step.entropy);
  }
  const Shape column{order.tokens(), 1};
  // The baseline changes only in training steps (while a DropoutScope exists), not in gradient
  // checks. The trainer skips a batch whose loss is not finite, so such a batch must not change the
  // baseline.
  if (dropout_key(1).on() && std::isfinite(total))
    baseline.assign(std::vector<double>{next_baseline(b, total / words, a.baseline_decay)});
  return surrogate_loss(
      concat_rows(log_choice),
      concat_rows(entropy) * Tensor::of(column, kept, store_.type(), store_.device()),
      Tensor::of(column, advantage, store_.type(), store_.device()), {a.lambda_r, a.lambda_e, 0},
      1);
}

}  // namespace fovea

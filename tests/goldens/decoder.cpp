#include "goldens/case.h"
#include "models/recurrent_model.h"
#include "ops/matmul.h"
#include "ops/shape.h"
#include "support/network_settings.h"

namespace fovea::goldens {
namespace {

std::vector<int32_t> ids(const Case& c, const std::string& key, const std::string& mask) {
  const auto kept = c.kept(key, mask);
  return {kept.begin(), kept.end()};
}

ModelConfig config_of(const Case& c) {
  const bool plain = c.name() == "seq2seq_plain", bahdanau = c.name() == "decoder_bahdanau";
  const std::string E = plain ? "param.E_tgt" : "param.E";
  ModelConfig m;
  RecurrentConfig& own = m.network.emplace<RecurrentConfig>();
  own.cell = bahdanau ? Cell::gru : Cell::lstm;
  own.decoder = bahdanau ? DecoderForm::bahdanau : DecoderForm::luong;
  m.encoder_layers = 1;
  m.decoder_layers = c.name() == "decoder_luong_2layers" ? 2 : 1;
  m.size = plain      ? c.shape("param.W_o")[1]
           : bahdanau ? c.shape("param.W_s")[0]
                      : c.shape("in.h0")[2];
  own.embedding = c.shape(E)[1];
  m.target_words = c.shape(E)[0];
  m.source_words = plain ? c.shape("param.E_src")[0] : 4;
  own.bidirectional = !plain;
  own.encoder_size = plain ? m.size : c.shape("in.h")[2] / 2;
  own.readout = c.shape("param.W_o")[1];
  own.input_feeding = c.name() != "decoder_luong_nofeed";
  m.tied = TiedEmbeddings::none;
  m.dropout = 0;
  own.attention.kind = plain ? "none" : "global";
  own.attention.score = plain ? "auto" : bahdanau ? "additive" : "general";
  if (bahdanau) own.attention.inner = c.shape("param.v")[0];
  return m;
}

// The parameters that the file stores in another form than the model. In the file, the first
// layer's weights are one matrix; the model splits its columns into those of the word and those of
// the context. In the file an LSTM has two biases; the model stores their sum.
class Parameters {
 public:
  explicit Parameters(Case& c) : c_(c) {}

  void weights(const std::string& name, const Tensor& W, const Tensor& C) {
    if (!C) return c_.assign(name, W);
    const std::vector<double>& both = c_.values("param." + name);
    const auto w = static_cast<size_t>(W.cols()), all = w + static_cast<size_t>(C.cols());
    std::vector<double> left, right;
    for (size_t i = 0; i < both.size(); ++i) (i % all < w ? left : right).push_back(both[i]);
    W.assign(left);
    C.assign(right);
    joined_.push_back({name, W, C});
  }
  void biases(const std::string& input, const std::string& state, const Tensor& b) {
    std::vector<double> sum = c_.values("param." + input);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += c_.values("param." + state)[i];
    b.assign(sum);
    summed_.emplace_back(input, b);
    summed_.emplace_back(state, b);
  }
  void expect_gradients() {
    c_.expect_gradients();
    for (const auto& [name, W, C] : joined_)
      c_.expect("grad.param." + name, concat_columns({W.grad(), C.grad()}));
    for (const auto& [name, b] : summed_) c_.expect("grad.param." + name, b.grad());
  }

 private:
  struct JoinedWeights {
    std::string name;
    Tensor W, C;
  };
  Case& c_;
  std::vector<JoinedWeights> joined_;
  std::vector<std::pair<std::string, Tensor>> summed_;
};

// A case's model and target words, and the comparisons that all cases share.
struct Example {
  Case& c;
  ModelConfig config;
  RecurrentModel model;
  Parameters parameters;
  std::vector<int32_t> offsets, in, out;

  explicit Example(Case& c)
      : c(c), config(config_of(c)), model(config, recurrent_of(config), c.type(), c.device()),
        parameters(c), offsets(c.offsets("in.tgt_mask")), in(ids(c, "in.y_in", "in.tgt_mask")),
        out(ids(c, "in.y_out", "in.tgt_mask")) {
    model.parameters().allocate(1);
    model.parameters().allocate_gradients();
    c.assign("W_o", model.W_o);
    c.assign("b_o", model.b_o);
  }

  void expect_steps(const RecurrentModel::EncoderOutput& source) {
    const auto target = RecurrentModel::Target::of({in, offsets}, c.device());
    const auto found = model.decode(source, target);
    auto expect = [&](const char* key, const Tensor& x) {
      c.expect_kept(key, "in.tgt_mask", rows_at(x, target.order.to));
    };
    expect("out.logits", linear(found.readout, model.W_o, model.b_o));
    if (c.has("out.h_tilde")) expect("out.h_tilde", found.readout);
    if (found.attended.empty()) return;
    std::vector<Tensor> contexts, weights;
    for (const AttentionResult& step : found.attended) {
      contexts.push_back(step.context);
      weights.push_back(step.weights);
    }
    expect("out.s", concat_rows(found.s));
    expect("out.context", concat_rows(contexts));
    expect("out.weights", concat_rows(weights));
  }

  // REQUIRES: a tape existed when `source` was computed.
  void expect_loss(Tape& tape, const RecurrentModel::EncoderOutput& source) {
    const BatchLoss loss = model.loss_after(source, {{}, {in, offsets}, out}, 0);
    const double count = static_cast<double>(out.size()), sum = loss.loss.values()[0];
    c.expect("out.loss_sum", std::vector<double>{sum});
    c.expect("out.main", std::vector<double>{sum / count});
    c.expect_kept("out.token_log_prob", "in.tgt_mask", loss.log_likelihood);
    tape.backward(loss.loss, c.number("in.loss_weight") / count);
    parameters.expect_gradients();
  }
};

void bahdanau(Case& c) {
  Example x(c);
  const RecurrentModel& m = x.model;
  c.assign("E", m.E_target);
  c.assign("W_s", m.W_s[0]);
  c.assign("W_r", m.W_r);
  for (const char* name : {"W_a", "U_a", "v"})
    c.assign(name, m.parameters().find(std::string("decoder/attend/") + name)->tensor);
  x.parameters.weights("gru.W", m.decoder[0].W, m.C);
  c.assign("gru.U", m.decoder[0].U);
  c.assign("gru.b", m.decoder[0].b);

  const Tensor h = c.packed("in.h", "in.src_mask");
  const SentenceOffsets sentences = c.packing("in.src_mask");
  std::vector<int32_t> first = c.offsets("in.src_mask");
  first.pop_back();  // the end of the last sentence
  auto encoded = [&] {
    const int64_t half = h.cols() / 2;
    const Tensor h_1 = rows_at(columns(h, half, half), c.of(first));  // ←h_1
    return RecurrentModel::EncoderOutput{m.attend->remember(h, sentences),
                                         m.first_states({h_1, h_1})};
  };
  const auto source = encoded();
  c.expect("out.s0", source.states[0]);
  x.expect_steps(source);
  Tape tape;
  x.expect_loss(tape, encoded());
  c.expect_kept("grad.in.h", "in.src_mask", h.grad());
}

// The first state [h | c] of one layer.
Tensor first_state(const Case& c, int64_t layer) {
  const int64_t B = c.shape("in.h0")[1], n = c.shape("in.h0")[2];
  auto part = [&](const char* key) { return c.tensor(key).window(layer, 1).view({B, n}); };
  const Tensor state = concat_columns({part("in.h0"), part("in.c0")});
  state.track();
  return state;
}

void luong(Case& c) {
  Example x(c);
  const RecurrentModel& m = x.model;
  c.assign("E", m.E_target);
  c.assign("W_c", m.W_r);
  c.assign("W_a", m.parameters().find("decoder/attend/W")->tensor);
  std::vector<Tensor> states;
  for (size_t l = 0; l < m.decoder.size(); ++l) {
    const std::string name = "lstm." + std::to_string(l) + ".";
    x.parameters.weights(name + "weight_ih", m.decoder[l].W, l == 0 ? m.C : Tensor());
    c.assign(name + "weight_hh", m.decoder[l].U);
    x.parameters.biases(name + "bias_ih", name + "bias_hh", m.decoder[l].b);
    states.push_back(first_state(c, static_cast<int64_t>(l)));
  }
  const Tensor h = c.packed("in.h", "in.src_mask");
  const SentenceOffsets sentences = c.packing("in.src_mask");
  x.expect_steps({m.attend->remember(h, sentences), states});
  Tape tape;
  x.expect_loss(tape, {m.attend->remember(h, sentences), states});
  c.expect_kept("grad.in.h", "in.src_mask", h.grad());
  std::vector<Tensor> dh, dc;
  for (const Tensor& state : states) {
    const int64_t n = state.cols() / 2;
    dh.push_back(columns(state.grad(), 0, n));
    dc.push_back(columns(state.grad(), n, n));
  }
  c.expect("grad.in.h0", concat_rows(dh));
  c.expect("grad.in.c0", concat_rows(dc));
}

void plain(Case& c) {
  Example x(c);
  const RecurrentModel& m = x.model;
  c.assign("E_src", m.E_source);
  c.assign("E_tgt", m.E_target);
  for (const auto& [name, cell] :
       {std::pair<std::string, const RecurrentCell&>("enc.", m.encoder.layers[0].cell),
        {"dec.", m.decoder[0]}}) {
    c.assign(name + "weight_ih_l0", cell.W);
    c.assign(name + "weight_hh_l0", cell.U);
    x.parameters.biases(name + "bias_ih_l0", name + "bias_hh_l0", cell.b);
  }
  const std::vector<int32_t> src = ids(c, "in.src", "in.src_mask"),
                             first = c.offsets("in.src_mask");
  const TokenBatch source{src, first};
  const auto encoded = m.encode(source);
  const int64_t n = encoded.states[0].cols() / 2;
  c.expect("out.enc_h", columns(encoded.states[0], 0, n));
  c.expect("out.enc_c", columns(encoded.states[0], n, n));
  x.expect_steps(encoded);
  Tape tape;
  x.expect_loss(tape, m.encode(source));
}

}  // namespace

void add_decoder_cases(std::map<std::string, Run>& cases) {
  cases["decoder_bahdanau"] = bahdanau;
  for (const char* name : {"decoder_luong", "decoder_luong_2layers", "decoder_luong_nofeed"})
    cases[name] = luong;
  cases["seq2seq_plain"] = plain;
}

}  // namespace fovea::goldens

#include <algorithm>

#include "goldens/case.h"
#include "nn/recurrent_layers.h"

namespace fovea::goldens {
namespace {

Cell cell_of(const std::string& name) {
  if (name.starts_with("lstm")) return Cell::lstm;
  if (name.starts_with("gru_after")) return Cell::gru_after;
  return name.starts_with("gru_before") ? Cell::gru : Cell::rnn;
}

// The file's biases of the input and of the state. The model stores their sum, except that
// gru_after has a separate bias inside the reset.
struct Biases {
  std::string ih, hh;

  explicit Biases(const std::string& end) : ih("bias_ih" + end), hh("bias_hh" + end) {}
  void assign(const Case& c, const RecurrentCell& cell) const {
    std::vector<double> b = c.values("param." + ih), u = c.values("param." + hh);
    const size_t merged = cell.b_n ? 2 * static_cast<size_t>(cell.H()) : b.size();
    for (size_t i = 0; i < merged; ++i) b[i] += u[i];
    cell.b.assign(b);
    if (cell.b_n) cell.b_n.assign(std::span(u).subspan(merged));
  }
  void expect_gradients(Case& c, const RecurrentCell& cell) const {
    std::vector<double> d = cell.b.grad().values();
    c.expect("grad.param." + ih, d);
    if (cell.b_n) {
      const auto d_n = cell.b_n.grad().values();
      std::ranges::copy(d_n, d.end() - cell.H());
    }
    c.expect("grad.param." + hh, d);
  }
};

// Converts states between the file, [layers, B, H] by sentence, and rows [h | c] in sorted order.
struct States {
  const TimeMajor& words;
  int64_t layers, B, H;

  std::vector<Tensor> of(const Case& c) const {
    std::vector<Tensor> all;
    const bool two = c.has("in.c0");
    for (int64_t l = 0; l < layers; ++l) {
      std::vector<double> rows;
      for (const int32_t sentence : words.order)
        for (const char* key : {"in.h0", "in.c0"}) {
          if (!two && key[3] == 'c') continue;
          const auto from = c.values(key).begin() + (l * B + sentence) * H;
          rows.insert(rows.end(), from, from + H);
        }
      all.push_back(c.of({B, two ? 2 * H : H}, rows));
      all.back().track();
    }
    return all;
  }
  // Columns first … first + H of each state.
  std::vector<double> as_file(const std::vector<Tensor>& states, int64_t first) const {
    std::vector<double> all(static_cast<size_t>(layers * B * H));
    for (int64_t l = 0; l < layers; ++l) {
      const auto values = states[static_cast<size_t>(l)].values();
      const int64_t width = static_cast<int64_t>(values.size()) / B;
      for (int64_t place = 0; place < B; ++place)
        std::copy_n(values.begin() + place * width + first, H,
                    all.begin() + (l * B + words.order[static_cast<size_t>(place)]) * H);
    }
    return all;
  }
};

void recurrent_case(Case& c) {
  const int64_t H = c.shape("in.h0")[2];
  const bool both = c.name().ends_with("bi2");
  ParameterStore store(c.type(), c.device());
  const RecurrentStack read(ParameterScope{store, ""},
                            {cell_of(c.name()), c.shape("in.x")[2], H, both ? 2 : 1,
                             both ? EncoderDirections::both_ways : EncoderDirections::forward});
  store.allocate(1);
  store.allocate_gradients();
  std::vector<std::pair<Biases, const RecurrentCell*>> biases;
  for (size_t i = 0; i < read.layers.size(); ++i) {
    const RecurrentCell& cell = read.layers[i].cell;
    const bool reverse = read.layers[i].direction == Direction::backward;
    const std::string end = "_l" + std::to_string(static_cast<int64_t>(i) / read.directions) +
                            (reverse ? "_reverse" : "");
    c.assign("weight_ih" + end, cell.W);
    c.assign("weight_hh" + end, cell.U);
    if (cell.kind == Cell::gru) {
      c.assign("bias" + end, cell.b);
      continue;
    }
    biases.emplace_back(Biases(end), &cell);
    biases.back().first.assign(c, cell);
  }

  const std::vector<int32_t> offsets = c.offsets("in.mask");
  std::vector<double> lengths;
  for (size_t b = 1; b < offsets.size(); ++b) lengths.push_back(offsets[b] - offsets[b - 1]);
  c.expect("in.lengths", lengths);
  const TimeMajor words = TimeMajor::of(offsets, c.device());
  const States states{words, static_cast<int64_t>(read.layers.size()), words.sentences(), H};
  const Tensor x = c.packed("in.x", "in.mask");
  const std::vector<Tensor> start = states.of(c);
  Tape tape;
  const auto found = read(rows_at(x, words.from), words, start);
  const Tensor y = rows_at(found.h, words.to);
  c.expect_kept("out.main", "in.mask", y);
  c.expect("out.h_n", states.as_file(found.last, 0));
  if (c.has("out.c_n")) c.expect("out.c_n", states.as_file(found.last, H));

  c.backward(tape, y, "in.mask");
  c.expect_kept("grad.in.x", "in.mask", x.grad());
  std::vector<Tensor> dstart;
  for (const Tensor& s : start) dstart.push_back(s.grad());
  c.expect("grad.in.h0", states.as_file(dstart, 0));
  if (c.has("grad.in.c0")) c.expect("grad.in.c0", states.as_file(dstart, H));
  c.expect_gradients();
  for (const auto& [both_of, cell] : biases) both_of.expect_gradients(c, *cell);
}

}  // namespace

void add_recurrent_cases(std::map<std::string, Run>& cases) {
  for (const char* cell : {"rnn_tanh", "lstm", "gru_after", "gru_before"})
    for (const char* layers : {"_uni", "_bi2"}) cases[std::string(cell) + layers] = recurrent_case;
}

}  // namespace fovea::goldens

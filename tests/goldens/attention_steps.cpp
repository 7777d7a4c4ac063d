#include "goldens/attention_steps.h"

#include <algorithm>

#include "attention/local_p.h"
#include "ops/recurrent.h"
#include "ops/shape.h"

namespace fovea::goldens {

std::string recipe_name(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

AttentionConfig config_of(const Case& c, const std::string& kind, const std::string& score) {
  AttentionConfig config;
  config.kind = kind;
  config.score = score;
  if (c.has("param.v")) config.inner = c.shape("param.v")[0];
  if (c.has("in.D")) config.window = static_cast<int64_t>(c.number("in.D"));
  if (c.has("in.slack")) config.slack = static_cast<int64_t>(c.number("in.slack"));
  if (score == "location") config.location_length = c.shape("param.W_a")[0];
  if (kind == "window") config.gaussians = c.shape("param.b")[0] / 3;
  return config;
}

AttentionSizes sizes_of(const Case& c) {
  const Shape& h = c.shape("in.h");
  return {c.has("in.s") ? c.shape("in.s").cols() : h.cols(), h.cols(), h[1]};
}

void assign_all(Case& c, ParameterStore& store) {
  store.allocate(1);
  store.allocate_gradients();
  for (const auto& p : store.all()) c.assign(p.name, p.tensor);
}

void expect_gradient(Case& c, const std::string& key, const std::string& mask, const Tensor& x) {
  const Tensor none = Tensor::zeros(x.shape(), x.type(), x.device());
  c.expect_kept(key, mask, x.slot()->holds() ? x.grad() : none);
}

Tensor owners(const Case& c, const std::string& mask) {
  const std::vector<int32_t> first = c.offsets(mask);
  std::vector<int32_t> owner;
  for (size_t b = 0; b + 1 < first.size(); ++b)
    owner.insert(owner.end(), static_cast<size_t>(first[b + 1] - first[b]),
                 static_cast<int32_t>(b));
  return c.of(owner);
}

namespace {

// In the cases, local-p has a separate inner size.
std::unique_ptr<Attention> attention_of(const Case& c, ParameterScope scope,
                                        const AttentionConfig& config) {
  const AttentionSizes sizes = sizes_of(c);
  if (config.kind != "local-p") return make_attention(scope, config, sizes);
  return std::make_unique<LocalPredictiveAttention>(
      scope, make_score(scope, config, sizes),
      LocalPredictiveAttention::Sizes{sizes.state, c.shape("param.W_p")[0], config.window});
}

}  // namespace

Steps::Steps(Case& c, const std::string& kind, const std::string& score)
    : c_(c), store_(c.type(), c.device()),
      attention_(attention_of(c, ParameterScope{store_, ""}, config_of(c, kind, score))),
      target_(c.packing("in.tgt_mask")), h_(c.packed("in.h", "in.src_mask")),
      s_(c.packed("in.s", "in.tgt_mask")) {
  assign_all(c, store_);
  memory_ = attention_->remember(h_, c.packing("in.src_mask"));
  const std::vector<int32_t> first = c.offsets("in.tgt_mask");
  for (int32_t t = 0; t < target_.longest; ++t) {
    std::vector<int32_t> rows, sentences;
    for (int32_t b = 0; b < target_.sentences; ++b) {
      if (t >= first[b + 1] - first[b]) continue;
      rows.push_back(first[b] + t);
      sentences.push_back(b);
    }
    rows_.push_back(c.of(rows));
    sentences_.push_back(c.of(sentences));
  }
}

void Steps::run() {
  std::vector<double> previous;  // sentences of the previous step
  AttentionState before;
  for (size_t t = 0; t < rows_.size(); ++t) {
    const std::vector<double> now = sentences_[t].values();
    std::vector<int32_t> from;
    for (const double b : now)
      if (t > 0)
        from.push_back(static_cast<int32_t>(std::ranges::find(previous, b) - previous.begin()));
    if (t > 0) before = chosen_rows(before, c_.of(from));
    before_.push_back(before);
    at_.push_back(attention_->attend({rows_at(s_, rows_[t]), sentences_[t]}, memory_, before));
    before = at_.back().now;
    previous = now;
  }
}

Tensor Steps::joined(const std::vector<Tensor>& steps) const {
  std::vector<Tensor> parts;
  std::vector<int32_t> place(static_cast<size_t>(target_.tokens));
  int32_t next = 0;
  for (size_t t = 0; t < steps.size(); ++t) {
    parts.push_back(steps[t].rank() == 2 ? steps[t] : steps[t].view({steps[t].elements(), 1}));
    for (const double row : rows_[t].values()) place[static_cast<size_t>(row)] = next++;
  }
  return rows_at(concat_rows(parts), c_.of(place));
}

Tensor Steps::shown(const char* name) const {
  std::vector<Tensor> steps;
  for (const AttentionResult& step : at_) steps.push_back(step.shown[name]);
  return joined(steps);
}

Tensor Steps::joined(Tensor AttentionResult::*part) const {
  std::vector<Tensor> steps;
  for (const AttentionResult& at : at_) steps.push_back(at.*part);
  return joined(steps);
}

Tensor Steps::scores() const {
  const RaggedQueries queries{memory_.sentences, owners(c_, "in.tgt_mask")};
  return attention<ScoredAttention>().score()(s_, memory_, queries);
}

void Steps::expect_gradients() const {
  expect_gradient(c_, "grad.in.h", "in.src_mask", h_);
  expect_gradient(c_, "grad.in.s", "in.tgt_mask", s_);
  c_.expect_gradients();
}

}  // namespace fovea::goldens

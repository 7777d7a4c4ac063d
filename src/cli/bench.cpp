#include "cli/bench.h"

#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "cli/session.h"
#include "decode/search.h"
#include "models/config.h"
#include "ops/dropout.h"
#include "ops/matmul.h"
#include "tensor/tape.h"
#include "text/batch.h"
#include "train/optimizer.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct BenchOptions {
  std::string model = "tiny", precision, device = "cpu";
  int64_t batch = 0, length = 0, beam = 4, new_words = 32, threads = 0, updates = 0, repeats = 3;
  bool json = false;
};

// A known shape and the batch that peers are measured with.
struct Subject {
  ModelConfig config;
  int64_t batch, length;
};

Subject subject(const std::string& name) {
  struct Row {
    int64_t words, size, inner, heads, layers;
    double dropout;
    int64_t batch, length;
  };
  static const std::map<std::string, Row> rows = {
      {"tiny", {10000, 128, 256, 4, 4, 0.3, 256, 16}},
      {"small", {8000, 256, 1024, 4, 3, 0.1, 256, 20}},
      {"iwslt", {10000, 512, 1024, 4, 6, 0.3, 64, 32}},
      {"base", {32000, 512, 2048, 8, 6, 0.1, 32, 32}},
  };
  const Row& r = rows.at(name);
  ModelConfig c;
  c.source_words = c.target_words = r.words;
  c.size = r.size, c.inner = r.inner, c.heads = r.heads;
  c.encoder_layers = c.decoder_layers = r.layers;
  c.dropout = c.activation_dropout = r.dropout;
  return {c, r.batch, r.length};
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Words drawn at random; lengths between 0.7 and 1 times `length`.
std::vector<PairBatch> random_batches(const Subject& s, int64_t count) {
  Random random(1);
  std::vector<PairBatch> batches(static_cast<size_t>(count));
  for (PairBatch& b : batches)
    for (int64_t i = 0; i < s.batch; ++i) {
      const auto least = static_cast<int64_t>(0.7 * static_cast<double>(s.length));
      const int64_t n = least + static_cast<int64_t>(random.below(s.length - least + 1)) - 1;
      std::vector<int32_t> words;
      for (int64_t j = 0; j < n; ++j)
        words.push_back(4 + static_cast<int32_t>(random.below(s.config.source_words - 4)));
      b.source.add(words, Packed::Mark::eos_after);
      b.target_in.add(words, Packed::Mark::bos_before);
      b.target_out.add(words, Packed::Mark::eos_after);
      b.target_tokens += n + 1;
    }
  return batches;
}

// Multiply-adds of the matrix products of one source and one target word; attention's own
// products, which grow with the length, included.
double products(const ModelConfig& c, double length) {
  const double D = static_cast<double>(c.size), F = static_cast<double>(c.inner);
  const double V = static_cast<double>(c.target_words);
  const double encoder = 4 * D * D + 2 * D * F + 2 * length * D;
  const double decoder = 8 * D * D + 2 * D * F + 3 * length * D;
  return static_cast<double>(c.encoder_layers) * encoder +
         static_cast<double>(c.decoder_layers) * decoder + D * V;
}

// Multiply-adds of translating a batch, attention over what is remembered left out.
double decoding_products(const ModelConfig& c, const Subject& s, const BenchOptions& o) {
  const double D = static_cast<double>(c.size), F = static_cast<double>(c.inner);
  const double source = static_cast<double>(s.batch * s.length);
  const double rows = static_cast<double>(s.batch * o.beam * o.new_words);
  const double encoder = static_cast<double>(c.encoder_layers) * (4 * D * D + 2 * D * F);
  const double keys = static_cast<double>(c.decoder_layers) * 2 * D * D;
  const double decoder = static_cast<double>(c.decoder_layers) * (6 * D * D + 2 * D * F);
  return source * (encoder + keys) + rows * (decoder + D * static_cast<double>(c.target_words));
}

// The rate of one large product in the current precision.
double peak_gflops() {
  const int64_t n = 1536;
  const Tensor a = Tensor::zeros({n, n}, Type::f32), b = Tensor::zeros({n, n}, Type::f32);
  a.mark_parameter();  // both are converted and packed once
  b.mark_parameter();
  linear(a, b);
  double best = 0;
  for (int i = 0; i < 8; ++i) {
    const auto begin = Clock::now();
    linear(a, b);
    best = std::max(best, 2e-9 * static_cast<double>(n * n * n) / seconds_since(begin));
  }
  parameters_changed();
  return best;
}

int64_t peak_memory() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return use.ru_maxrss * 1024;
}

void print(const Json& json, const BenchOptions& options) {
  if (options.json) {
    fmt::print("{}\n", json.dump());
    return;
  }
  for (const auto& [key, value] : json.items()) fmt::print("{:<22} {}\n", key, value.dump());
}

// Middle, least and greatest of what `measure` returns.
template <class Measure>
std::vector<double> repeated(int64_t repeats, Measure measure) {
  std::vector<double> rates;
  for (int64_t i = 0; i < repeats; ++i) rates.push_back(measure());
  std::ranges::sort(rates);
  return {rates[rates.size() / 2], rates.front(), rates.back()};
}

Precision precision_of(const std::string& name) {
  if (name == "bf16") return Precision::bf16;
  return name == "int8" ? Precision::int8 : Precision::f32;
}

// What products really take in: bf16 is f32 on processors that gain nothing from it.
std::string effective(const std::string& wanted) {
  const PrecisionScope scope(precision_of(wanted));
  const Tensor probe = Tensor::zeros({1, 1}, Type::f32);
  return wanted == "bf16" && as_operand(probe).type() == Type::f32 ? "f32" : wanted;
}

Json header(const char* figure, const BenchOptions& o, const Subject& s, const Model& model) {
  return {{"figure", figure},
          {"model", o.model},
          {"batch", s.batch},
          {"length", s.length},
          {"parameters", model.parameters().size()},
          {"precision", effective(o.precision)},
          {"threads", omp_get_max_threads()}};
}

void bench_train(BenchOptions o) {
  Subject s = subject(o.model);
  if (o.batch) s.batch = o.batch;
  if (o.length) s.length = o.length;
  if (o.precision.empty()) o.precision = "bf16";
  const PrecisionScope scope(precision_of(o.precision));
  const double peak = peak_gflops();
  const auto model = make_model(s.config, 1);
  ParameterStore& store = model->parameters();
  store.allocate_gradients();
  Optimizer optimizer(store, {.clip = 1.0});
  const auto batches = random_batches(s, 8);
  int64_t step = 0;
  auto train = [&](const PairBatch& b) {
    const DropoutScope dropout(1, static_cast<uint32_t>(++step));
    {
      Tape tape;
      const BatchLoss loss =
          model->loss({b.source.ids, b.source.offsets}, {b.target_in.ids, b.target_in.offsets},
                      b.target_out.ids, 0.1);
      tape.backward(loss.loss);
    }
    optimizer.update(step, 1e-4, optimizer.gradient_norm(),
                     1.0 / static_cast<double>(b.target_tokens));
    store.gradients().fill(0);
    return b.target_tokens;
  };
  for (int i = 0; i < 2; ++i) train(batches[static_cast<size_t>(i)]);
  const int64_t updates = o.updates ? o.updates : o.model == "base" ? 2 : 8;
  const auto rates = repeated(o.repeats, [&] {
    const auto begin = Clock::now();
    int64_t words = 0;
    for (int64_t i = 0; i < updates; ++i) words += train(batches[static_cast<size_t>(i % 8)]);
    return static_cast<double>(words) / seconds_since(begin);
  });
  const double flops = 6 * products(s.config, 0.85 * static_cast<double>(s.length));
  Json json = header("train", o, s, *model);
  json.update({{"tokens_per_s", std::round(rates[0])},
               {"spread", {std::round(rates[1]), std::round(rates[2])}},
               {"gflops", std::round(rates[0] * flops * 1e-9)},
               {"peak_gflops", std::round(peak)},
               {"share_of_peak", std::round(1000 * rates[0] * flops * 1e-9 / peak) / 1000},
               {"arena_bytes", memory_use().reserved},
               {"peak_memory_bytes", peak_memory()}});
  print(json, o);
}

void bench_decode(BenchOptions o) {
  Subject s = subject(o.model);
  s.batch = o.batch ? o.batch : 32;
  s.length = o.length ? o.length : 28;
  if (o.precision.empty()) o.precision = "f32";
  const PrecisionScope scope(precision_of(o.precision));
  const double peak = peak_gflops();
  s.config.output_bias = true;  // keeps </s> away, so that every hypothesis has all its words
  const auto model = make_model(s.config, 1);
  std::vector<double> bias(static_cast<size_t>(s.config.target_words), 0.0);
  bias[kEos] = -1e9;
  model->parameters().find("output/b")->tensor.assign(bias);
  Random random(1);
  Packed source;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < s.batch; ++i) {
    std::vector<int32_t> words;
    for (int64_t j = 0; j + 1 < s.length; ++j)
      words.push_back(4 + static_cast<int32_t>(random.below(s.config.source_words - 4)));
    source.add(words, Packed::Mark::eos_after);
    numbers.push_back(i);
  }
  SearchOptions options;
  options.beam = o.beam;
  options.max_length = o.new_words;
  options.max_length_factor = 100;
  const Model* models[] = {model.get()};
  auto decode = [&] { search(models, {source.ids, source.offsets}, numbers, options); };
  decode();
  const auto seconds = repeated(o.repeats, [&] {
    const auto begin = Clock::now();
    decode();
    return seconds_since(begin);
  });
  const double words = static_cast<double>(s.batch * o.new_words);
  const double gflops = 2e-9 * decoding_products(s.config, s, o) / seconds[0];
  Json json = header("decode", o, s, *model);
  json.update({{"beam", o.beam},
               {"new_words", o.new_words},
               {"tokens_per_s", std::round(words / seconds[0])},
               {"spread", {std::round(words / seconds[2]), std::round(words / seconds[1])}},
               {"latency_ms", std::round(seconds[0] * 1e4) / 10},
               {"gflops", std::round(gflops)},
               {"peak_gflops", std::round(peak)},
               {"share_of_peak", std::round(1000 * gflops / peak) / 1000},
               {"arena_bytes", memory_use().reserved},
               {"peak_memory_bytes", peak_memory()}});
  print(json, o);
}

void add_options(CLI::App& app, BenchOptions& o) {
  app.add_option("--model", o.model, "the shape to run")
      ->check(CLI::IsMember({"tiny", "small", "iwslt", "base"}));
  app.add_option("--batch", o.batch, "sentences in a batch")->check(CLI::Range(1, 1 << 20));
  app.add_option("--length", o.length, "words of the longest sentence")->check(CLI::Range(2, 500));
  add_device_option(app, o.device);
  app.add_option("--threads", o.threads, "threads (default: all cores)")->check(CLI::Range(1, 512));
  app.add_option("--repeats", o.repeats, "measurements; the middle one is reported")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--json", o.json, "one JSON line");
}

void prepare(const BenchOptions& o) {
  check_device(o.device);
  if (o.threads) omp_set_num_threads(static_cast<int>(o.threads));
}

}  // namespace

void add_bench(CLI::App& app) {
  auto* bench = app.add_subcommand("bench", "Measure speed on known shapes with random words");
  bench->require_subcommand(1);
  bench->footer(
      "Examples:\n"
      "  fovea bench train --model tiny --json\n"
      "  fovea bench decode --model base --beam 4 --json\n"
      "  fovea bench train --model base --batch 128 --length 32   # 4,096 words a batch");
  auto options = std::make_shared<BenchOptions>();
  auto* train = bench->add_subcommand("train", "updates: forward, backward, Adam");
  add_options(*train, *options);
  train->add_option("--precision", options->precision, "inputs of products; default bf16")
      ->check(CLI::IsMember({"f32", "bf16"}));
  train->add_option("--updates,--steps", options->updates, "updates per measurement")
      ->check(CLI::Range(1, 100000));
  train->callback([options] {
    prepare(*options);
    bench_train(*options);
  });
  auto* decode = bench->add_subcommand("decode", "translation of a batch of sentences");
  add_options(*decode, *options);
  decode->add_option("--precision", options->precision, "inputs of products; default f32")
      ->check(CLI::IsMember({"f32", "bf16", "int8"}));
  decode->add_option("--beam", options->beam, "beam size")->check(CLI::Range(1, 64));
  decode->add_option("--new-words", options->new_words, "words of each translation")
      ->check(CLI::Range(1, 500));
  decode->callback([options] {
    prepare(*options);
    bench_decode(*options);
  });
}

}  // namespace fovea

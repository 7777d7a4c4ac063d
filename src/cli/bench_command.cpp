#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "base/random.h"
#include "cli/bench_models.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "decode/search.h"
#include "ops/matmul.h"
#include "tensor/workspace.h"
#include "train/optimizer.h"
#include "train/step_graphs.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct BenchOptions {
  std::string model = "tiny", precision, device = "cpu";
  int64_t batch = 0, length = 0, beam = 4, new_words = 32, updates = 0, repeats = 3;
  bool json = false;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Measures the rate of a large matrix product in the current precision, in GFLOP/s.
double peak_gflops(Device device) {
  const int64_t n = device == Device{Cpu{}} ? 1536 : 8192;
  Tensor a({n, n}, ElementType::f32, device), b({n, n}, ElementType::f32, device);
  Random random(1);  // random values, because a GPU multiplies zeros faster
  std::vector<double> numbers(static_cast<size_t>(n * n));
  for (double& number : numbers) number = random.uniform() - 0.5;
  a.assign(numbers);
  b.assign(numbers);
  a.mark_parameter();  // so that conversion and packing happen only once
  b.mark_parameter();
  linear(a, b);
  double best = 0;
  for (int i = 0; i < 8; ++i) {
    finish(device);
    const auto begin = Clock::now();
    linear(a, b);
    finish(device);
    best = std::max(best, 2e-9 * static_cast<double>(n * n * n) / seconds_since(begin));
  }
  parameters_changed();
  return best;
}

// Returns peak_gflops(), and releases the memory of that measurement, so that memory figures show
// the model alone.
double machine_peak(Device device) {
  const double peak = peak_gflops(device);
  release_memory(device);
  return peak;
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
  for (const auto& [key, value] : json.items())
    fmt::print("{:<22} {}\n", label_of_key(key), readable_value(key, value));
}

// Returns median, minimum and maximum of `repeats` results of measure(). Shows progress only on
// terminals, because programs read the logs of measurements.
template <class Measure>
std::vector<double> repeated(int64_t repeats, Measure measure) {
  std::optional<Progress> progress;
  if (isatty(STDERR_FILENO)) progress.emplace("measuring", repeats, ProgressOptions{"runs", 1});
  std::vector<double> rates;
  for (int64_t i = 0; i < repeats; ++i) {
    if (progress) progress->set(i);
    rates.push_back(measure());
  }
  if (progress) progress->set(repeats);
  std::ranges::sort(rates);
  return {rates[rates.size() / 2], rates.front(), rates.back()};
}

// The results that `train` and `decode` have in common: median and range of the words per second,
// and the work per second.
struct BenchResult {
  const char* figure;
  double words_per_s, slowest, fastest, gflops, peak_gflops;
  Json details;  // further values of one measurement
};

void report(const BenchResult& r, const BenchOptions& o, const BenchModel& s, const Model& model) {
  const Device device = model.parameters().device();
  Json json{{"figure", r.figure},
            {"model", o.model},
            {"batch", s.batch},
            {"length", s.length},
            {"parameters", model.parameters().size()},
            {"precision", o.precision == "bf16" && !gains_from_bf16(device) ? "f32" : o.precision},
            {"device", o.device},
            {"threads", omp_get_max_threads()}};
  json.update(r.details);
  json.update({{"tokens_per_s", std::round(r.words_per_s)},
               {"spread", {std::round(r.slowest), std::round(r.fastest)}},
               {"gflops", std::round(r.gflops)},
               {"peak_gflops", std::round(r.peak_gflops)},
               {"share_of_peak", std::round(1000 * r.gflops / r.peak_gflops) / 1000},
               {"arena_bytes", memory_use(device).reserved},
               {"peak_memory_bytes", peak_memory()}});
  print(json, o);
}

// Whether an update of the model takes seconds.
bool is_large(const std::string& model) { return model == "base" || model == "rnnsearch"; }

void bench_train(BenchOptions o) {
  BenchModel s = bench_models().at(o.model);
  if (o.batch) s.batch = o.batch;
  if (o.length) s.length = o.length;
  if (o.precision.empty()) o.precision = "bf16";
  const PrecisionScope scope(precision_named(o.precision));
  const Device device = device_named(o.device);
  const double peak = machine_peak(device);
  const auto model = make_model(s.config, 1, ElementType::f32, device);
  ParameterStore& store = model->parameters();
  store.allocate_gradients();
  Optimizer optimizer(store, {.clip = 1.0});
  StepGraphs steps(*model, optimizer, {.label_smoothing = 0.1});
  const auto batches = random_batches(s, 8);
  int64_t step = 0;
  auto train = [&](const PairBatch& b) {
    ++step;
    steps.update(b, {1, step}, step, 1e-4);
    return b.target_tokens;
  };
  const int64_t before =
      device == Device{Cpu{}} ? 2 : 16;  // warm-up updates; on a GPU they capture all graphs
  for (int64_t i = 0; i < before; ++i) train(batches[static_cast<size_t>(i % 8)]);
  const int64_t updates = o.updates ? o.updates : is_large(o.model) ? 2 : 8;
  int64_t words = 0;  // number of words in one measurement
  const auto rates = repeated(o.repeats, [&] {
    const auto begin = Clock::now();
    words = 0;
    for (int64_t i = 0; i < updates; ++i) words += train(batches[static_cast<size_t>(i % 8)]);
    finish(device);
    return static_cast<double>(words) / seconds_since(begin);
  });
  const WordWork each = work_per_word(s.config, 0.85 * static_cast<double>(s.length));
  const double flops =
      6 * (each.source + each.target);  // 2 in the forward pass, 4 in the backward pass
  const double update_ms =
      1e3 * static_cast<double>(words) / static_cast<double>(updates) / rates[0];
  report({"train",
          rates[0],
          rates[1],
          rates[2],
          rates[0] * flops * 1e-9,
          peak,
          {{"ms_per_update", std::round(100 * update_ms) / 100}}},
         o, s, *model);
}

void bench_decode(BenchOptions o) {
  BenchModel s = bench_models().at(o.model);
  s.batch = o.batch ? o.batch : 32;
  s.length = o.length ? o.length : 28;
  if (o.precision.empty()) o.precision = "f32";
  const PrecisionScope scope(precision_named(o.precision));
  const Device device = device_named(o.device);
  const double peak = machine_peak(device);
  if (auto* own = std::get_if<TransformerConfig>(&s.config.network))
    own->output_bias = true;  // its −1e9 prevents </s>, so every hypothesis has full length
  const auto model = make_model(s.config, 1, ElementType::f32, device);
  std::vector<double> bias(static_cast<size_t>(s.config.target_words), 0.0);
  bias[kEos] = -1e9;
  model->parameters().find("output/b")->tensor.assign(bias);
  model->freeze_for_inference();
  Random random(1);
  PackedSentences source;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < s.batch; ++i) {
    source.add(random_words(random, s.config, s.length - 1), PackedSentences::Mark::eos_after);
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
  const WordWork each = work_per_word(s.config, 0);  // without attention to cached keys and values
  const double rows = words * static_cast<double>(o.beam);
  const double products =
      static_cast<double>(s.batch * s.length) * each.source + rows * each.target;
  const double gflops = 2e-9 * products / seconds[0];
  report({"decode",
          words / seconds[0],
          words / seconds[2],
          words / seconds[1],
          gflops,
          peak,
          {{"beam", o.beam},
           {"new_words", o.new_words},
           {"latency_ms", std::round(seconds[0] * 1e4) / 10}}},
         o, s, *model);
}

void add_options(Command& command, BenchOptions& o) {
  std::vector<std::string> names;
  for (const auto& [name, model] : bench_models()) names.push_back(name);
  command.option("--model", o.model, "Model shape").among(names);
  command.option("--batch", o.batch, "Number of sentences per batch").within(1, 1 << 20);
  command.option("--length", o.length, "Number of words of the longest sentence").within(2, 500);
  add_device_option(command, o.device);
  command.option("--repeats", o.repeats, "Number of measurements; the median is reported")
      .within(1, 1000);
  command.flag("--json", o.json, "Print one line of JSON");
}

}  // namespace

void add_bench(Command& program) {
  Command bench =
      program.command("bench", "Measure speed with standard model shapes and random words");
  bench.needs_command();
  bench.footer(
      "Examples:\n"
      "  fovea bench train --model tiny --json\n"
      "  fovea bench train --model rnnsearch --json\n"
      "  fovea bench decode --model base --beam 4 --json\n"
      "  fovea bench train --model base --batch 128 --length 32   # 4,096 words per batch");
  auto options = std::make_shared<BenchOptions>();
  Command train = bench.command("train", "Measure training: forward pass, backward pass, Adam");
  add_options(train, *options);
  train
      .option("--precision", options->precision,
              "Arithmetic precision of matrix products; default: bf16")
      .among({"f32", "bf16"});
  train.option("--updates,--steps", options->updates, "Number of updates per measurement")
      .within(1, 100000);
  train.runs([options] { bench_train(*options); });
  Command decode = bench.command("decode", "Measure the translation of a batch of sentences");
  add_options(decode, *options);
  decode
      .option("--precision", options->precision,
              "Arithmetic precision of matrix products; default: f32")
      .among({"f32", "bf16", "int8"});
  decode.option("--beam", options->beam, "Beam size").within(1, 64);
  decode.option("--new-words", options->new_words, "Number of words of each translation")
      .within(1, 500);
  decode.runs([options] { bench_decode(*options); });
}

}  // namespace fovea

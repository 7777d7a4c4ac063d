#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/log.h"
#include "base/random.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "decode/search.h"
#include "models/model_config.h"
#include "nn/recurrent_layers.h"
#include "ops/matmul.h"
#include "tensor/workspace.h"
#include "text/batch.h"
#include "train/optimizer.h"
#include "train/step_graphs.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct BenchOptions {
  std::string model = "tiny", precision, device = "cpu";
  int64_t batch = 0, length = 0, beam = 4, new_words = 32, threads = 0, updates = 0, repeats = 3;
  bool json = false;
};

// A model shape with a name, and the default batch, which is also used to measure other toolkits.
struct BenchModel {
  ModelConfig config;
  int64_t batch, length;
};

struct TransformerShape {
  int64_t words, size, inner, heads, layers;
  double dropout;

  ModelConfig config() const {
    ModelConfig c;
    c.source_words = c.target_words = words;
    c.size = size, c.inner = inner, c.heads = heads;
    c.encoder_layers = c.decoder_layers = layers;
    c.dropout = c.activation_dropout = dropout;
    return c;
  }
};

struct RecurrentShape {
  Cell cell;
  DecoderForm decoder;
  const char* score;
  int64_t words, embedding, size, readout, layers;
  EncoderDirections reading;
  double dropout;

  ModelConfig config() const {
    ModelConfig c;
    c.type = "recurrent";
    c.cell = cell, c.decoder = decoder, c.attention.score = score;
    c.source_words = c.target_words = words;
    c.embedding = embedding, c.size = size, c.readout = readout;
    c.encoder_layers = c.decoder_layers = layers;
    c.bidirectional = reading == EncoderDirections::both_ways;
    c.dropout = dropout;
    c.tied = TiedEmbeddings::none;
    return c;
  }
};

// rnnsearch: Bahdanau et al. 2015 with the GRU of PyTorch. luong: Luong et al. 2015 with the
// default sizes of OpenNMT.
const std::map<std::string, BenchModel>& bench_models() {
  static const RecurrentShape rnnsearch{Cell::gru_after,
                                        DecoderForm::bahdanau,
                                        "additive",
                                        30000,
                                        620,
                                        1000,
                                        620,
                                        1,
                                        EncoderDirections::both_ways,
                                        0};
  static const RecurrentShape luong{
      Cell::lstm, DecoderForm::luong,         "general", 30000, 500, 500, 500,
      2,          EncoderDirections::forward, 0.3};
  static const std::map<std::string, BenchModel> known = {
      {"tiny", {TransformerShape{10000, 128, 256, 4, 4, 0.3}.config(), 256, 16}},
      {"small", {TransformerShape{8000, 256, 1024, 4, 3, 0.1}.config(), 256, 20}},
      {"iwslt", {TransformerShape{10000, 512, 1024, 4, 6, 0.3}.config(), 64, 32}},
      {"base", {TransformerShape{32000, 512, 2048, 8, 6, 0.1}.config(), 32, 32}},
      {"rnnsearch", {rnnsearch.config(), 80, 32}},
      {"luong", {luong.config(), 64, 32}},
  };
  return known;
}

std::vector<std::string> bench_model_names() {
  std::vector<std::string> names;
  for (const auto& [name, subject] : bench_models()) names.push_back(name);
  return names;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Batches of random words. Lengths are between 0.7 and 1 times s.length.
std::vector<PairBatch> random_batches(const BenchModel& s, int64_t count) {
  Random random(1);
  std::vector<PairBatch> batches(static_cast<size_t>(count));
  for (PairBatch& b : batches)
    for (int64_t i = 0; i < s.batch; ++i) {
      const auto least = static_cast<int64_t>(0.7 * static_cast<double>(s.length));
      const int64_t n = least + static_cast<int64_t>(random.below(s.length - least + 1)) - 1;
      std::vector<int32_t> words;
      for (int64_t j = 0; j < n; ++j)
        words.push_back(4 + static_cast<int32_t>(random.below(s.config.source_words - 4)));
      b.source.add(words, PackedSentences::Mark::eos_after);
      b.target_in.add(words, PackedSentences::Mark::bos_before);
      b.target_out.add(words, PackedSentences::Mark::eos_after);
      b.target_tokens += n + 1;
    }
  return batches;
}

// Multiply-adds in the matrix products for one word of the source and one of the target.
struct Work {
  double source, target;
};

// Includes attention over `length` words.
Work transformer_work(const ModelConfig& c, double length) {
  const double D = static_cast<double>(c.size), F = static_cast<double>(c.inner);
  const double encoder = 4 * D * D + 2 * D * F + 2 * length * D, keys = 2 * D * D;
  const double decoder = 6 * D * D + 2 * D * F + 3 * length * D;
  const double layers = static_cast<double>(c.decoder_layers);
  return {static_cast<double>(c.encoder_layers) * encoder + layers * keys,
          layers * decoder + D * static_cast<double>(c.target_words)};
}

Work recurrent_work(const ModelConfig& c, double length) {
  const bool bahdanau = c.decoder == DecoderForm::bahdanau,
             additive = c.attention.score == "additive";
  const double n = static_cast<double>(c.size), E = static_cast<double>(c.embedding_size());
  const double D = static_cast<double>(c.annotation_size()), G = static_cast<double>(gates(c.cell));
  const double R = static_cast<double>(c.readout_size()), ways = c.bidirectional ? 2 : 1;
  const double above_encoder = static_cast<double>(c.encoder_layers - 1),
               above_decoder = static_cast<double>(c.decoder_layers - 1);
  const double encoder = G * D * (E + D / ways) + above_encoder * G * D * (D + D / ways);
  const double keys = n * D;
  const double decoder = G * n * (E + n + (bahdanau ? D : R)) + above_decoder * G * n * 2 * n;
  const double attention = (additive ? n * n : 0) + length * (n + D);
  const double readout = R * (n + D + (bahdanau ? E : 0));
  return {encoder + keys, decoder + attention + readout + R * static_cast<double>(c.target_words)};
}

Work work(const ModelConfig& c, double length) {
  return c.type == "recurrent" ? recurrent_work(c, length) : transformer_work(c, length);
}

// The rate of a large matrix product in the current precision.
double peak_gflops(Device device) {
  const int64_t n = device == Device{Cpu{}} ? 1536 : 8192;
  Tensor a({n, n}, ElementType::f32, device), b({n, n}, ElementType::f32, device);
  Random random(1);  // a GPU multiplies zeros faster
  std::vector<double> numbers(static_cast<size_t>(n * n));
  for (double& number : numbers) number = random.uniform() - 0.5;
  a.assign(numbers);
  b.assign(numbers);
  a.mark_parameter();  // so both are converted and packed only once
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

// The same, and releases its memory, so that memory figures show the model alone.
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

// The label of a key: "tokens_per_s" gives "tokens per s", "arena_bytes" gives "arena".
std::string label_of(std::string key) {
  if (key.ends_with("_bytes")) key.resize(key.size() - std::string("_bytes").size());
  std::ranges::replace(key, '_', ' ');
  return key;
}

// A value as text, with three significant digits, since later digits vary between runs. Large
// numbers have commas.
std::string readable(const std::string& key, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) return readable(key, value.front()) + " to " + readable(key, value.back());
  if (key.ends_with("_bytes")) return fmt::format("{:.0f} MiB", value.get<double>() / 0x1p20);
  if (key.starts_with("share")) return fmt::format("{:.0f} %", 100 * value.get<double>());
  if (value.is_number_integer()) return with_commas(value.get<int64_t>());
  const double number = value.get<double>();
  if (number < 100) return fmt::format("{:.3g}", number);
  const double unit = std::pow(10, std::floor(std::log10(number)) - 2);
  return with_commas(std::llround(std::round(number / unit) * unit));
}

void print(const Json& json, const BenchOptions& options) {
  if (options.json) {
    fmt::print("{}\n", json.dump());
    return;
  }
  for (const auto& [key, value] : json.items())
    fmt::print("{:<22} {}\n", label_of(key), readable(key, value));
}

// Median, minimum and maximum of `repeats` results of measure(). Shows progress only on terminals,
// because programs read logs of measurements.
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

// The precision that matrix products really use.
std::string effective_precision(const std::string& requested, Device device) {
  return requested == "bf16" && !gains_from_bf16(device) ? "f32" : requested;
}

Json header(const char* figure, const BenchOptions& o, const BenchModel& s, const Model& model) {
  return {{"figure", figure},
          {"model", o.model},
          {"batch", s.batch},
          {"length", s.length},
          {"parameters", model.parameters().size()},
          {"precision", effective_precision(o.precision, model.parameters().device())},
          {"device", o.device},
          {"threads", omp_get_max_threads()}};
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
      device == Device{Cpu{}} ? 2 : 16;  // warm-up; on a GPU it captures the graphs of all sizes
  for (int64_t i = 0; i < before; ++i) train(batches[static_cast<size_t>(i % 8)]);
  const int64_t updates = o.updates ? o.updates : is_large(o.model) ? 2 : 8;
  int64_t words = 0;  // of one measurement
  const auto rates = repeated(o.repeats, [&] {
    const auto begin = Clock::now();
    words = 0;
    for (int64_t i = 0; i < updates; ++i) words += train(batches[static_cast<size_t>(i % 8)]);
    finish(device);
    return static_cast<double>(words) / seconds_since(begin);
  });
  const Work each = work(s.config, 0.85 * static_cast<double>(s.length));
  const double flops =
      6 * (each.source + each.target);  // 2 for the forward pass, 4 for the backward pass
  Json json = header("train", o, s, *model);
  json.update({{"tokens_per_s", std::round(rates[0])},
               {"spread", {std::round(rates[1]), std::round(rates[2])}},
               {"ms_per_update", std::round(1e5 * static_cast<double>(words) /
                                            static_cast<double>(updates) / rates[0]) /
                                     100},
               {"gflops", std::round(rates[0] * flops * 1e-9)},
               {"peak_gflops", std::round(peak)},
               {"share_of_peak", std::round(1000 * rates[0] * flops * 1e-9 / peak) / 1000},
               {"arena_bytes", memory_use(device).reserved},
               {"peak_memory_bytes", peak_memory()}});
  print(json, o);
}

void bench_decode(BenchOptions o) {
  BenchModel s = bench_models().at(o.model);
  s.batch = o.batch ? o.batch : 32;
  s.length = o.length ? o.length : 28;
  if (o.precision.empty()) o.precision = "f32";
  const PrecisionScope scope(precision_named(o.precision));
  const Device device = device_named(o.device);
  const double peak = machine_peak(device);
  s.config.output_bias = true;  // its −1e9 prevents </s>, so every hypothesis has full length
  const auto model = make_model(s.config, 1, ElementType::f32, device);
  std::vector<double> bias(static_cast<size_t>(s.config.target_words), 0.0);
  bias[kEos] = -1e9;
  model->parameters().find("output/b")->tensor.assign(bias);
  model->freeze_for_inference();
  Random random(1);
  PackedSentences source;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < s.batch; ++i) {
    std::vector<int32_t> words;
    for (int64_t j = 0; j + 1 < s.length; ++j)
      words.push_back(4 + static_cast<int32_t>(random.below(s.config.source_words - 4)));
    source.add(words, PackedSentences::Mark::eos_after);
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
  const Work each = work(s.config, 0);  // without attention over the key/value cache
  const double rows = words * static_cast<double>(o.beam);
  const double products =
      static_cast<double>(s.batch * s.length) * each.source + rows * each.target;
  const double gflops = 2e-9 * products / seconds[0];
  Json json = header("decode", o, s, *model);
  json.update({{"beam", o.beam},
               {"new_words", o.new_words},
               {"tokens_per_s", std::round(words / seconds[0])},
               {"spread", {std::round(words / seconds[2]), std::round(words / seconds[1])}},
               {"latency_ms", std::round(seconds[0] * 1e4) / 10},
               {"gflops", std::round(gflops)},
               {"peak_gflops", std::round(peak)},
               {"share_of_peak", std::round(1000 * gflops / peak) / 1000},
               {"arena_bytes", memory_use(device).reserved},
               {"peak_memory_bytes", peak_memory()}});
  print(json, o);
}

void add_options(Command& command, BenchOptions& o) {
  command.option("--model", o.model, "Model shape").among(bench_model_names());
  command.option("--batch", o.batch, "Number of sentences per batch").within(1, 1 << 20);
  command.option("--length", o.length, "Number of words of the longest sentence").within(2, 500);
  add_device_option(command, o.device);
  command.option("--threads", o.threads, "Number of threads; default: one per core").within(1, 512);
  command.option("--repeats", o.repeats, "Number of measurements; the median is reported")
      .within(1, 1000);
  command.flag("--json", o.json, "Print one line of JSON");
}

void prepare(const BenchOptions& o) {
  if (o.threads) omp_set_num_threads(static_cast<int>(o.threads));
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
  train.runs([options] {
    prepare(*options);
    bench_train(*options);
  });
  Command decode = bench.command("decode", "Measure the translation of a batch of sentences");
  add_options(decode, *options);
  decode
      .option("--precision", options->precision,
              "Arithmetic precision of matrix products; default: f32")
      .among({"f32", "bf16", "int8"});
  decode.option("--beam", options->beam, "Beam size").within(1, 64);
  decode.option("--new-words", options->new_words, "Number of words of each translation")
      .within(1, 500);
  decode.runs([options] {
    prepare(*options);
    bench_decode(*options);
  });
}

}  // namespace fovea

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sstream>

#include "ops/matmul.h"
#include "support/parity.h"

namespace fovea::parity {
namespace {

using Results = std::vector<Trial::Result>;
using Kind = Trial::Result::Kind;

Device device_under_test() {
  static const char* const name = std::getenv("FOVEA_DEVICE");
  static const Device device = device_named(name && *name ? name : "cpu");
  return device;
}
// Whether smaller shapes will do.
bool light() {
  static const bool full = std::getenv("FOVEA_PARITY_FULL") != nullptr;
  return std::holds_alternative<Cpu>(device_under_test()) && !full;
}

uint64_t seed_of(const std::string& name) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325u;
  for (const unsigned char c : name) h = (h ^ c) * 0x100000001b3u;
  return h;
}

std::string text(const Sizes& sizes) {
  std::ostringstream out;
  for (size_t i = 0; i < sizes.size(); ++i) out << (i ? " " : "[") << sizes[i];
  out << ']';
  return out.str();
}

// What the next tensors are made of: numbers that were never set are no numbers.
void poison(Device device) {
  const int64_t most = std::holds_alternative<Cpu>(device) ? 1 << 17 : 1 << 24;  // floats
  std::vector<Tensor> blocks;
  for (int64_t n = 16; n <= most; n *= 4) {
    blocks.emplace_back(Shape{n}, Type::f32, device);
    blocks.back().fill(std::numeric_limits<double>::quiet_NaN());
  }
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values)
    if (std::isfinite(v)) sum += v * v;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

constexpr double kNothing = 1e-9;  // rounding in double leaves less of what cancels

// The largest of all results of a kind: what a result that is 0 by its mathematics is small beside.
double largest_of(Kind kind, const Results& results) {
  double largest = 0;
  for (const auto& r : results)
    if (r.kind == kind) largest = std::max(largest, root_mean_square(r.values));
  return largest > kNothing ? largest : 1;
}

struct Difference {
  double nmse = 0;  // Σ(found − expected)² / Σexpected², infinite where a number is none
  size_t at = 0;    // where it is largest
};

// `least` is what a result is compared with at least, `largest` what it is where it is nothing.
Difference difference(const std::vector<double>& found, const std::vector<double>& expected,
                      double largest, double least) {
  if (found.size() != expected.size()) return {HUGE_VAL, 0};
  Difference d;
  double off = 0, most = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == expected[i]) continue;  // infinities among them
    const double apart = (found[i] - expected[i]) * (found[i] - expected[i]);
    if (!std::isfinite(apart)) return {HUGE_VAL, i};
    off += apart;
    if (apart > most) most = apart, d.at = i;
  }
  const double size = root_mean_square(expected),
               against = size < kNothing * largest ? largest : std::max(size, least);
  d.nmse = off / (against * against * static_cast<double>(std::max<size_t>(1, found.size())));
  return d;
}

struct Limit {
  Precision precision;
  double bar;
  double least;  // share of the largest result of its kind that each is compared with at least
};

// All results of a kind one after another.
Trial::Result joined(const Results& results, Kind kind, const char* name) {
  Trial::Result all{name, kind, {}};
  for (const auto& r : results)
    if (r.kind == kind) all.values.insert(all.values.end(), r.values.begin(), r.values.end());
  return all;
}
Results joined(const Results& results) {
  return {joined(results, Kind::value, "values"), joined(results, Kind::gradient, "gradients")};
}

}  // namespace

struct Family::Summary {
  const char* precision;
  int64_t cases = 0, shapes = 0;
  double share = -1, error = 0, bar = 0;  // of the worst: its error as a share of the bar
  std::string worst = {};
  std::vector<std::string> failures = {};

  void note(double found, double allowed, const std::string& where) {
    if (found / allowed <= share) return;
    share = found / allowed, error = found, bar = allowed;
    worst = where;
  }
  std::string line(const std::string& family) const {
    char text[200];
    std::snprintf(text, sizeof(text), "%s  %-15s %-4s %3ld cases %5ld shapes, worst %.1e of %.1e: ",
                  failures.empty() ? "ok    " : "FAILED", family.c_str(), precision,
                  static_cast<long>(cases), static_cast<long>(shapes), error, bar);
    return text + worst;
  }
};

namespace {

// One run; a device that throws gives no results.
struct Job {
  const Family::Case& run;
  const Sizes& sizes;
  uint64_t seed;
  int64_t number;
  bool back;

  Results results(Trial::Place place, Precision precision) const {
    poison(place.device);
    const PrecisionScope scope(precision);
    Trial trial(seed, number, place);
    if (!back) {
      run(trial, sizes);
      return trial.results();
    }
    std::optional<DropoutScope> dropout;
    if (trial.drops()) dropout.emplace(11, static_cast<uint32_t>(number));
    Tape tape;
    run(trial, sizes);
    trial.go_back(tape);
    return trial.results();
  }
};

// Lines of all families, those that failed first.
class Report : public ::testing::Environment {
 public:
  static std::vector<std::string>& lines() {
    static std::vector<std::string> all;
    return all;
  }
  void TearDown() override {
    std::ranges::stable_partition(lines(), [](const auto& l) { return l.starts_with("FAILED"); });
    std::printf("%s in float32 and bf16 against the CPU in double\n",
                std::visit([](auto on) { return on.kName; }, device_under_test()));
    for (const std::string& line : lines()) std::printf("%s\n", line.c_str());
  }
};
const auto* const report = ::testing::AddGlobalTestEnvironment(new Report);

constexpr size_t kFailuresShown = 6;
constexpr size_t kFew = 8;  // numbers

std::string differing(const Trial::Result& found, const Trial::Result& expected, size_t at) {
  char text[160];
  const double a = at < found.values.size() ? found.values[at] : NAN;
  const double b = at < expected.values.size() ? expected.values[at] : NAN;
  std::snprintf(text, sizeof(text), ", %.9g instead of %.9g at %zu of %zu", a, b, at,
                expected.values.size());
  return text;
}

// Results that are all equal where they are integers, and near enough where they are not.
template <class Summary>
void compare(const Results& found, const Results& expected, const Limit& limit,
             const std::string& where, Summary& summary) {
  if (found.size() != expected.size()) {
    summary.note(HUGE_VAL, limit.bar, where);
    summary.failures.push_back(where + ": other results than on the CPU");
    return;
  }
  const double value = largest_of(Kind::value, expected),
               gradient = largest_of(Kind::gradient, expected);
  for (size_t i = 0; i < found.size(); ++i) {
    const Trial::Result &f = found[i], &e = expected[i];
    const double largest = e.kind == Kind::gradient ? gradient : value;
    Difference d = difference(f.values, e.values, largest, limit.least * largest);
    if (e.kind == Kind::integers && d.nmse > 0) d.nmse = HUGE_VAL;
    const bool bf16 = limit.precision == Precision::bf16;
    const double error = bf16 ? std::sqrt(d.nmse) : d.nmse;
    const double bar = bf16 && e.values.size() < kFew ? 4 * limit.bar : limit.bar;
    summary.note(error, bar, where + " " + e.name);
    if (error <= bar) continue;
    std::ostringstream text;
    text << where << " " << e.name << ": " << error << differing(f, e, d.at);
    summary.failures.push_back(text.str());
  }
}

}  // namespace

std::vector<Sizes> Shapes::draw(uint64_t seed) const {
  constexpr int64_t kOnDevices = 50, kLargestOnCpu = 40;
  Sizes most = largest;
  for (int64_t& n : most) n = light() ? std::min(n, kLargestOnCpu) : n;
  std::vector<Sizes> all{Sizes(most.size(), 1), most};
  Random random(seed, 1);
  const int64_t count = light() ? few : kOnDevices;
  while (std::ssize(all) < count) {
    Sizes next;
    for (const int64_t top : most) {  // as many small ones as large ones
      auto n =
          static_cast<int64_t>(std::exp(random.uniform() * std::log(static_cast<double>(top) + 1)));
      switch (random.below(4)) {
        case 0:
          n = (n + 7) / 8 * 8;
          break;
        case 1:
          n |= 1;
          break;
        default:
          break;
      }
      next.push_back(std::clamp<int64_t>(n, 1, top));
    }
    all.push_back(next);
  }
  if (!light()) all.insert(all.end(), large.begin(), large.end());
  return all;
}

Family::Family(std::string name)
    : name_(std::move(name)), f32_(new Summary{"f32"}), bf16_(new Summary{"bf16"}) {}

Family::~Family() {
  for (const Summary* s : {f32_.get(), bf16_.get()}) {
    if (s->cases == 0) continue;
    Report::lines().push_back(s->line(name_));
    if (s->failures.empty()) continue;
    std::ostringstream text;
    for (size_t i = 0; i < std::min(s->failures.size(), kFailuresShown); ++i)
      text << "\n  " << s->failures[i];
    ADD_FAILURE() << name_ << ' ' << s->precision << ": " << s->failures.size() << " results differ"
                  << text.str();
  }
}

void Family::check(const std::string& name, Bar bar, const Shapes& shapes, const Case& run) {
  check(name, bar, shapes, run, Way::and_back);
}
void Family::check_forward(const std::string& name, Bar bar, const Shapes& shapes,
                           const Case& run) {
  check(name, bar, shapes, run, Way::forward);
}

void Family::check(const std::string& name, Bar bar, const Shapes& shapes, const Case& run,
                   Way way) {
  const uint64_t seed = seed_of(name_ + ' ' + name);
  const Limit f32 = bar == Bar::elementwise ? Limit{Precision::f32, 1e-10, 0.1}
                                            : Limit{Precision::f32, 1e-7, 0.01};
  const Limit bf16{Precision::bf16, 1.6e-2, 0.1};
  const bool with_bf16 = bar == Bar::products || bar == Bar::composed;
  const std::vector<Sizes> all = shapes.draw(seed);
  auto against = [&](const Results& expected, const Job& job, const Limit& limit, Summary& to) {
    const std::string where = name + ' ' + text(job.sizes);
    ++to.shapes;
    try {
      const auto found = job.results({Type::f32, device_under_test()}, limit.precision);
      if (limit.precision == Precision::bf16 && bar == Bar::composed)
        compare(joined(found), joined(expected), limit, where, to);
      else
        compare(found, expected, limit, where, to);
    } catch (const std::exception& e) {
      to.note(HUGE_VAL, limit.bar, where);
      to.failures.push_back(where + ": " + e.what());
    }
  };
  ++f32_->cases;
  bf16_->cases += with_bf16;
  for (size_t i = 0; i < all.size(); ++i) {
    const Job job{run, all[i], seed, static_cast<int64_t>(i), way == Way::and_back};
    const Results expected = job.results({}, Precision::f32);
    against(expected, job, f32, *f32_);
    if (with_bf16) against(expected, job, bf16, *bf16_);
  }
}

}  // namespace fovea::parity

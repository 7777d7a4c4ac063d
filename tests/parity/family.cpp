#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sstream>

#include "ops/matmul.h"
#include "support/parity.h"
#include "tensor/rounding.h"
#include "tensor/workspace.h"

namespace fovea::parity {

Device device_under_test() {
  static const char* const name = std::getenv("FOVEA_DEVICE");
  static const Device device = [] {
    const Device found = device_named(name && *name ? name : "cpu");
    if (std::getenv("FOVEA_PARITY_SINGLY")) allocate_singly(found);
    return found;
  }();
  return device;
}

namespace {

using Results = std::vector<Trial::Result>;
using Kind = Trial::Result::Kind;

// Whether smaller shapes will do, and how many of them: 0 where each case says so. Or whether only
// the large ones are wanted.
struct Effort {
  bool light = std::holds_alternative<Cpu>(device_under_test()), only_large = false;
  int64_t shapes = 0;

  Effort() {
    const char* const wish = std::getenv("FOVEA_PARITY");
    if (!wish || !*wish) return;
    const std::string_view word = wish;
    shapes = std::atoll(wish);
    light = shapes > 0;
    only_large = word == "large";
    fovea::check(light || only_large || word == "all", Exit::usage, "FOVEA_PARITY=", word,
                 ": expected all, large or how many shapes each case has");
  }
};
const Effort& effort() {
  static const Effort only;
  return only;
}

// FOVEA_PARITY_SHARE=2/5: of five programs that share the cases, counted from 0, number two.
struct Share {
  long mine = 0, all = 1;

  Share() {
    const char* const wish = std::getenv("FOVEA_PARITY_SHARE");
    if (!wish || !*wish) return;
    const bool read = std::sscanf(wish, "%ld/%ld", &mine, &all) == 2;
    check(read && 0 <= mine && mine < all, Exit::usage, "FOVEA_PARITY_SHARE=", wish,
          ": expected K/N with K from 0 to N - 1");
  }
};
bool is_other_share(int64_t number) {
  static const Share share;
  return number % share.all != share.mine;
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
  if (std::getenv("FOVEA_PARITY_SINGLY")) return;  // tools see what was never set
  const int64_t most = std::holds_alternative<Cpu>(device) ? 1 << 17 : 1 << 24;  // floats
  std::vector<Tensor> blocks;
  for (int64_t n = 16; n <= most; n *= 4) {
    blocks.emplace_back(Shape{n}, Type::f32, device);
    blocks.back().fill(std::numeric_limits<double>::quiet_NaN());
  }
}

// How far apart, as the root of the mean of squares: infinite where a number is none.
struct Distance {
  double size = 0;
  size_t at = 0;  // where it is largest
};
Distance distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return {HUGE_VAL, 0};
  Distance d;
  double sum = 0, most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;  // infinities among them
    const double square = (a[i] - b[i]) * (a[i] - b[i]);
    if (!std::isfinite(square)) return {HUGE_VAL, i};
    sum += square;
    if (square > most) most = square, d.at = i;
  }
  d.size = std::sqrt(sum / static_cast<double>(std::max<size_t>(1, a.size())));
  return d;
}

double size_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values)
    if (std::isfinite(v)) sum += v * v;
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(1, values.size())));
}

constexpr double kNothing = 1e-9;  // less than this of the largest is 0

double largest_of(Kind kind, const Results& results) {
  double largest = 0;
  for (const auto& r : results)
    if (r.kind == kind) largest = std::max(largest, size_of(r.values));
  return largest > kNothing ? largest : 1;  // as inputs are
}

struct Limit {
  Precision precision;
  double bar;   // ‖out − ref‖ / ‖ref‖
  double unit;  // what the reference is rounded by
};
Limit f32_limit(Bar bar) {
  return {Precision::f32, std::sqrt(bar == Bar::elementwise ? 1e-10 : 1e-7), 0x1p-22};
}
constexpr double kTimes = 4;  // what a result may be wrong by, of what rounding moves it by
constexpr int kRoundings = 4, kRoundingsForJumps = 64;

}  // namespace

// The worst of many results: what it is as a share of what it may be.
struct Worst {
  double share = -1, found = 0, allowed = 0;
  std::string where = {};

  void note(double error, double limit, const std::string& at) {
    if (error / limit <= share) return;
    share = error / limit, found = error, allowed = limit, where = at;
  }
};

struct Family::Summary {
  Precision precision;
  int64_t cases = 0, shapes = 0, results = 0, rounded = 0, jumped = 0;
  Worst by_itself = {}, by_rounding = {};
  std::vector<std::string> failures = {};

  const char* name() const { return precision == Precision::f32 ? "f32" : "bf16"; }
  std::string line(const std::string& family) const {
    const bool bf16 = precision == Precision::bf16;
    auto shown = [bf16](double error) {
      return bf16 ? error : error * error;
    };  // as bars are named
    char text[200];
    std::snprintf(text, sizeof(text), "%s  %-15s %-4s %3ld cases %5ld shapes, worst %.1e of %.1e: ",
                  failures.empty() ? "ok    " : "FAILED", family.c_str(), name(),
                  static_cast<long>(cases), static_cast<long>(shapes), shown(by_itself.found),
                  shown(by_itself.allowed));
    std::string line = text + by_itself.where;
    if (rounded == 0) return line;
    std::snprintf(text, sizeof(text), "; %ld of %ld results by rounding, worst %.1f of %.0f: ",
                  static_cast<long>(rounded), static_cast<long>(results), by_rounding.found,
                  by_rounding.allowed);
    line += text + by_rounding.where;
    return jumped ? line + "; " + std::to_string(jumped) + " jump as roundings do" : line;
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
    std::stable_partition(lines().begin(), lines().end(),
                          [](const auto& l) { return l.starts_with("FAILED"); });
    std::printf("%s in float32 and bf16 against the CPU in double\n",
                std::visit([](auto on) { return on.kName; }, device_under_test()));
    for (const std::string& line : lines()) std::printf("%s\n", line.c_str());
  }
};
const auto* const report = ::testing::AddGlobalTestEnvironment(new Report);

constexpr size_t kFailuresShown = 6;

std::string differing(const Trial::Result& found, const Trial::Result& expected, size_t at) {
  char text[160];
  const double a = at < found.values.size() ? found.values[at] : NAN;
  const double b = at < expected.values.size() ? expected.values[at] : NAN;
  std::snprintf(text, sizeof(text), ", %.9g instead of %.9g at %zu of %zu", a, b, at,
                expected.values.size());
  return text;
}

// The reference of one shape, and what rounding does to it: tried when it is first asked for.
class Reference {
 public:
  Reference(const Job& job, double unit, const Results& results)
      : job_(job), unit_(unit), results_(results) {}

  const Results& results() const { return results_; }

  // The root of the mean square of what roundings move result i by.
  double moved(size_t i) {
    draw_until(kRoundings);
    const double largest = largest_of(results_[i].kind, results_);
    const bool nothing = size_of(results_[i].values) <= kNothing * largest;
    return std::max(std::sqrt(squares_[i] / draws_), nothing ? unit_ * largest : 0);
  }
  // The most that one of many roundings moves it by: where rounding takes a number across the kink
  // of a relu, a gradient jumps. Few draws do so, and a mean does not show how far.
  double jumped(size_t i) {
    draw_until(kRoundingsForJumps);
    return most_[i];
  }

 private:
  void draw_until(int draws) {
    squares_.resize(results_.size()), most_.resize(results_.size());
    for (; draws_ < draws; ++draws_) {
      const Rounding rounding(unit_, job_.seed + static_cast<uint64_t>(draws_));
      const Results rounded = job_.results({}, Precision::f32);
      for (size_t i = 0; i < squares_.size() && i < rounded.size(); ++i) {
        const double off = distance(rounded[i].values, results_[i].values).size;
        squares_[i] += off * off;
        most_[i] = std::max(most_[i], off);
      }
    }
  }

  const Job& job_;
  double unit_;
  const Results& results_;
  int draws_ = 0;
  std::vector<double> squares_, most_;  // of each result
};

// Results that are all equal where they are integers, and near enough where they are not.
template <class Summary>
void compare(const Results& found, Reference& reference, const Limit& limit,
             const std::string& where, Summary& summary) {
  const Results& expected = reference.results();
  if (found.size() != expected.size()) {
    summary.failures.push_back(where + ": other results than on the CPU");
    return;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const Trial::Result &f = found[i], &e = expected[i];
    const std::string at = where + ' ' + e.name;
    const Distance off = distance(f.values, e.values);
    ++summary.results;
    if (off.size <= limit.bar * size_of(e.values) && (e.kind != Kind::integers || off.size == 0)) {
      if (off.size > 0) summary.by_itself.note(off.size / size_of(e.values), limit.bar, at);
      continue;
    }
    const double moved = e.kind == Kind::integers ? 0 : reference.moved(i);
    if (off.size <= kTimes * moved) {
      ++summary.rounded;
      summary.by_rounding.note(off.size / moved, kTimes, at);
      continue;
    }
    if (e.kind != Kind::integers && off.size <= reference.jumped(i)) {
      ++summary.jumped;
      continue;
    }
    summary.by_itself.note(off.size / size_of(e.values), limit.bar, at);
    std::ostringstream text;
    text << at << ": off by " << off.size / size_of(e.values) << " of itself, " << off.size / moved
         << " of its roundings" << differing(f, e, off.at);
    summary.failures.push_back(text.str());
  }
}

}  // namespace

std::vector<Sizes> Shapes::draw(uint64_t seed) const {
  constexpr int64_t kOnDevices = 50, kLargestOnCpu = 40;
  Sizes most = largest;
  for (int64_t& n : most) n = effort().light ? std::min(n, kLargestOnCpu) : n;
  std::vector<Sizes> all{Sizes(most.size(), 1), most};
  Random random(seed, 1);
  const int64_t some = effort().shapes ? effort().shapes : few;
  const int64_t count = effort().light ? some : kOnDevices;
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
  if (!effort().light) all.insert(all.end(), large.begin(), large.end());
  return all;
}

Family::Family(std::string name)
    : name_(std::move(name)), f32_(new Summary{Precision::f32}),
      bf16_(new Summary{Precision::bf16}) {}

Family::~Family() {
  for (const Summary* s : {f32_.get(), bf16_.get()}) {
    if (s->cases == 0) continue;
    Report::lines().push_back(s->line(name_));
    if (s->failures.empty()) continue;
    std::ostringstream text;
    for (size_t i = 0; i < std::min(s->failures.size(), kFailuresShown); ++i)
      text << "\n  " << s->failures[i];
    ADD_FAILURE() << name_ << ' ' << s->name() << ": " << s->failures.size() << " results differ"
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

Family::Mutants Family::mutants(const Sizes& sizes, const Case& run) const {
  const Job job{run, sizes, seed_of(name_), 1, true};
  const Results expected = job.results({}, Precision::f32);
  const Limit limit = f32_limit(Bar::products);
  Reference reference(job, limit.unit, expected);
  Mutants found;
  for (int64_t at = 0;; ++at) {
    auto mutation = std::make_unique<Mutation>(Mutation::Kind::scaled, at);
    const Results spoilt = job.results({Type::f32, device_under_test()}, limit.precision);
    const bool there = mutation->seen > at, done = mutation->done;
    mutation.reset();  // the reference is not spoilt
    if (!there) return found;
    if (!done) continue;
    Summary judged{Precision::f32};
    compare(spoilt, reference, limit, name_, judged);
    ++found.all;
    found.caught += !judged.failures.empty();
  }
}

void Family::check(const std::string& name, Bar bar, const Shapes& shapes, const Case& run,
                   Way way) {
  if (is_other_share(number_++)) return;
  const uint64_t seed = seed_of(name_ + ' ' + name);
  const Limit f32 = f32_limit(bar), bf16{Precision::bf16, 1.6e-2, 0x1p-8};
  const bool with_bf16 = bar == Bar::products;
  const std::vector<Sizes> all = shapes.draw(seed);
  const size_t first = effort().only_large ? all.size() - shapes.large.size() : 0;
  auto against = [&](const Results& expected, const Job& job, const Limit& limit, Summary& to) {
    const std::string where = name + ' ' + text(job.sizes);
    ++to.shapes;
    try {
      Reference reference(job, limit.unit, expected);
      const auto found = job.results({Type::f32, device_under_test()}, limit.precision);
      compare(found, reference, limit, where, to);
    } catch (const std::exception& e) {
      to.failures.push_back(where + ": " + e.what());
    }
  };
  ++f32_->cases;
  bf16_->cases += with_bf16;
  for (size_t i = first; i < all.size(); ++i) {
    const Job job{run, all[i], seed, static_cast<int64_t>(i), way == Way::and_back};
    const Results expected = job.results({}, Precision::f32);
    against(expected, job, f32, *f32_);
    if (with_bf16) against(expected, job, bf16, *bf16_);
  }
}

}  // namespace fovea::parity

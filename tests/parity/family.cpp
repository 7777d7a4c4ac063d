#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

#include "ops/matmul.h"
#include "parity/judge.h"
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

// The effort of a run: whether smaller shapes suffice, and their number (0: as each case
// specifies); or whether only the large shapes run.
struct Effort {
  bool light = std::holds_alternative<Cpu>(device_under_test()), only_large = false;
  int64_t shapes = 0;

  Effort() {
    const char* const setting = std::getenv("FOVEA_PARITY");
    if (!setting || !*setting) return;
    const std::string_view word = setting;
    shapes = std::atoll(setting);
    light = shapes > 0;
    only_large = word == "large";
    fovea::check(light || only_large || word == "all", ExitCode::usage, "FOVEA_PARITY=", word,
                 ": expected all, large or the number of shapes of each case");
  }
};
const Effort& effort() {
  static const Effort only;
  return only;
}

// FOVEA_PARITY_SHARE=2/5: number two, counted from 0, of five programs that share the shapes.
struct Share {
  long mine = 0, all = 1;

  Share() {
    const char* const setting = std::getenv("FOVEA_PARITY_SHARE");
    if (!setting || !*setting) return;
    const bool read = std::sscanf(setting, "%ld/%ld", &mine, &all) == 2;
    check(read && 0 <= mine && mine < all, ExitCode::usage, "FOVEA_PARITY_SHARE=", setting,
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

// Fills free memory with NaN, so that the next tensors show if they are read before they are
// written.
void poison(Device device) {
  if (std::getenv("FOVEA_PARITY_SINGLY")) return;  // tools find unwritten memory
  const int64_t most = std::holds_alternative<Cpu>(device) ? 1 << 17 : 1 << 24;  // floats
  std::vector<Tensor> blocks;
  for (int64_t n = 16; n <= most; n *= 4) {
    blocks.emplace_back(Shape{n}, ElementType::f32, device);
    blocks.back().fill(std::numeric_limits<double>::quiet_NaN());
  }
}

}  // namespace

// The worst of many results: its error as a share of the tolerance.
struct WorstResult {
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
  WorstResult by_itself = {}, by_rounding = {};
  std::vector<std::string> failures = {};

  const char* name() const { return precision == Precision::f32 ? "f32" : "bf16"; }

  void note(const Judgement& j, const Limit& limit, const std::string& at) {
    ++results;
    rounded += j.verdict == Verdict::by_rounding;
    jumped += j.verdict == Verdict::by_jump;
    if (j.verdict == Verdict::by_rounding) by_rounding.note(j.of_rounding, kRoundingFactor, at);
    if (j.verdict == Verdict::by_itself && j.error > 0) by_itself.note(j.error, limit.bar, at);
    if (j.verdict != Verdict::wrong) return;
    by_itself.note(j.error, limit.bar, at);
    failures.push_back(at + ": " + j.why);
  }
  std::string line(const std::string& family) const {
    const bool bf16 = precision == Precision::bf16;
    auto shown = [bf16](double error) {
      return bf16 ? error : error * error;
    };  // bars are named as squares for f32
    char text[200];
    std::snprintf(text, sizeof(text), "%s  %-15s %-4s %3ld cases %5ld shapes, worst %.1e of %.1e: ",
                  failures.empty() ? "ok    " : "FAILED", family.c_str(), name(),
                  static_cast<long>(cases), static_cast<long>(shapes), shown(by_itself.found),
                  shown(by_itself.allowed));
    std::string line = text + by_itself.where;
    if (jumped) line += "; " + std::to_string(jumped) + " results jump like their roundings";
    if (rounded == 0) return line;
    std::snprintf(text, sizeof(text), "; %ld of %ld results by rounding, worst %.1f of %.0f: ",
                  static_cast<long>(rounded), static_cast<long>(results), by_rounding.found,
                  by_rounding.allowed);
    return line + text + by_rounding.where;
  }
};

namespace {

// One run of a case, on the device or as the reference.
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

// The report: lines of all families, with failed ones first, and why their results were accepted.
class Report : public ::testing::Environment {
 public:
  struct Totals {
    int64_t results = 0, rounded = 0, jumped = 0;
  };
  static std::vector<std::string>& lines() {
    static std::vector<std::string> all;
    return all;
  }
  static std::map<std::string, Totals>& totals() {
    static std::map<std::string, Totals> all;
    return all;
  }
  void TearDown() override {
    std::stable_partition(lines().begin(), lines().end(),
                          [](const auto& l) { return l.starts_with("FAILED"); });
    std::printf("%s in float32 and bf16 against the CPU in double\n",
                std::visit([](auto on) { return on.kName; }, device_under_test()));
    for (const std::string& line : lines()) std::printf("%s\n", line.c_str());
    for (const auto& [precision, n] : totals())
      std::printf("%-4s %ld results, of which %ld accepted by rounding and %ld by a jump\n",
                  precision.c_str(), static_cast<long>(n.results), static_cast<long>(n.rounded),
                  static_cast<long>(n.jumped));
  }
};
const auto* const report = ::testing::AddGlobalTestEnvironment(new Report);

constexpr size_t kFailuresShown = 6;

Reference reference_of(const Job& job, const Results& expected, const Limit& limit) {
  return {expected, [&job, &limit](uint64_t number) {
            const RoundingNoise rounding(limit.unit, job.seed + number);
            return job.results({}, Precision::f32);
          }};
}

template <class Summary>
void compare(const Results& found, Reference& reference, const Limit& limit,
             const std::string& where, Summary& summary) {
  const Results& expected = reference.results();
  if (found.size() != expected.size()) {
    summary.failures.push_back(where + ": the number of results differs from the CPU");
    return;
  }
  for (size_t i = 0; i < found.size(); ++i)
    summary.note(judge(found[i], i, reference, limit), limit, where + ' ' + expected[i].name);
}

}  // namespace

std::vector<Sizes> Shapes::draw(uint64_t seed) const {
  constexpr int64_t kOnDevices = 50, kLargestOnCpu = 40, kMostTries = 1000;
  Sizes most = largest;
  for (int64_t& n : most) n = effort().light ? std::min(n, kLargestOnCpu) : n;
  std::vector<Sizes> all{Sizes(most.size(), 1), most};
  Random random(seed, 1);
  const int64_t some = effort().shapes ? effort().shapes : few;
  const int64_t count = effort().light ? some : kOnDevices;
  for (int64_t tries = 0; std::ssize(all) < count; ++tries) {
    Sizes next;
    for (const int64_t top : most) {  // logarithmic: small sizes are as frequent as large ones
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
    // No shape twice, unless there are too few different ones.
    if (tries >= kMostTries || std::ranges::find(all, next) == all.end()) all.push_back(next);
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
    auto& totals = Report::totals()[s->name()];
    totals.results += s->results, totals.rounded += s->rounded, totals.jumped += s->jumped;
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

void Family::report(const std::string& line) const {
  const char* held = ::testing::Test::HasFailure() ? "FAILED  " : "ok      ";
  Report::lines().push_back(held + name_ + ' ' + line);
}

namespace {

bool differ(const Results& a, const Results& b) {  // by more than the rounding of double
  const Reference reference(b, {});
  for (size_t i = 0; i < a.size(); ++i)
    if (size_of_difference(a[i].values, b[i].values) > 1e-6 * reference.largest(i)) return true;
  return false;
}

}  // namespace

Family::Mutants Family::mutants(const Mutant& kind, Precision precision, const Sizes& sizes,
                                const Case& run) const {
  const Job job{run, sizes, seed_of(name_), 1, true};
  const Results expected = job.results({}, Precision::f32);
  const Limit limit = limit_of(Bar::products, precision);
  Reference reference = reference_of(job, expected, limit);
  const auto is_seen = [&](const Results& results) {
    Summary judged{precision};
    compare(results, reference, limit, name_, judged);
    return !judged.failures.empty();
  };
  const Trial::Place place{ElementType::f32, device_under_test()};
  EXPECT_FALSE(is_seen(job.results(place, precision))) << "the run has no mutation";
  Mutants found;
  for (int64_t at = 0;; ++at) {
    const auto mutated = [&](Trial::Place in, Precision with) -> std::optional<Results> {
      const GradientMutation mutation(kind.kind, at, kind.by);
      Results results = job.results(in, with);
      if (mutation.seen <= at) return {};
      return results;
    };
    const auto in_double = mutated({}, Precision::f32), results = mutated(place, precision);
    if (!in_double || !results) return found;
    if (!differ(*in_double, expected)) continue;  // the contribution is 0 or has no effect
    ++found.all;
    found.caught += is_seen(*results);
  }
}

void Family::check(const std::string& name, Bar bar, const Shapes& shapes, const Case& run,
                   Way way) {
  const uint64_t seed = seed_of(name_ + ' ' + name);
  const Limit f32 = limit_of(bar, Precision::f32), bf16 = limit_of(bar, Precision::bf16);
  const bool with_bf16 = bar == Bar::products || bar == Bar::rough;
  const std::vector<Sizes> all = shapes.draw(seed);
  const size_t first = effort().only_large ? all.size() - shapes.large.size() : 0;
  auto against = [&](const Results& expected, const Job& job, const Limit& limit, Summary& to) {
    const std::string where = name + ' ' + text(job.sizes);
    ++to.shapes;
    try {
      Reference reference = reference_of(job, expected, limit);
      const auto found = job.results({ElementType::f32, device_under_test()}, limit.precision);
      compare(found, reference, limit, where, to);
    } catch (const std::exception& e) {
      to.failures.push_back(where + ": " + e.what());
    }
  };
  bool any = false;
  for (size_t i = first; i < all.size(); ++i) {
    if (is_other_share(number_++)) continue;
    if (!any) ++f32_->cases, bf16_->cases += with_bf16;
    any = true;
    const Job job{run, all[i], seed, static_cast<int64_t>(i), way == Way::and_back};
    const Results expected = job.results({}, Precision::f32);
    against(expected, job, f32, *f32_);
    if (with_bf16) against(expected, job, bf16, *bf16_);
  }
}

}  // namespace fovea::parity

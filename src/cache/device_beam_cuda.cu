#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "cache/device_beam_kernel.h"
#include "ops/topk_kernel.h"
#include "tensor/cuda.h"
#include "tensor/memory.h"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 512;
static_assert(kMostSteered <= kWarp);  // one lane per hypothesis

// The state of the search of each sentence. If a sentence has no live hypotheses, its search has
// ended.
struct Sentences {
  int count, width, n_best;
  double* log_probs;  // [count, width]: of the live hypotheses
  double* ended;      // [count, n_best]: scores of the best finished hypotheses, descending
  double* limits;     // [count]: max_length^α
  int32_t *max_lengths, *source_first, *source_words;
  int32_t *alive, *first;    // [count]: number of live rows, index of the first live row
  int32_t *words, *parents;  // [count, width]: rows of the next step
};

// The rows of a step, with the k best words of each row: their scores (values) and ids (columns).
struct RankedRows {
  const float *log_sum, *values;
  const int32_t* columns;
  Matrix<const float> scores;
  float* endings;
  int k;
};

// The BeamRules for one step, in the form that kernels read.
struct StepRules {
  int step;                    // number of words of a hypothesis before the new word
  double length, next_length;  // (number of words)^α with the new word; with one more word
  bool early_stop, rising;     // rising: α ≥ 0, so that length^α does not fall
  int32_t end, banned_count;
  int32_t banned[kMostBanned];

  __device__ bool allow(int32_t word) const {
    bool good = word >= 0;
    for (int i = 0; i < banned_count; ++i) good = good && word != banned[i];
    return good;
  }
};

// The words that can continue a row, the best first.
struct Continuations {
  double before;  // log-probability of the hypothesis so far
  float log_sum, ending;
  const float* values;
  const int32_t* columns;
  int left;          // number of candidates that were not yet tried
  bool none = true;  // true until the first word is selected
  bool any = false;  // whether `sum` and `word` describe a next candidate
  double sum = 0;
  int32_t word = -1;

  __device__ double log_prob(float score) const {
    const double p = static_cast<double>(score) - static_cast<double>(log_sum);
    return p < 0 ? p : 0;
  }
  __device__ void select(int32_t next, double p) {
    any = true;
    none = false;
    word = next;
    sum = before + p;
  }
  __device__ void advance(const StepRules& rules) {
    any = false;
    while (left > 0 && !any) {
      const double p = log_prob(*values);
      if (rules.allow(*columns) && p > kImpossible) select(*columns, p);
      ++values, ++columns, --left;
    }
    if (none) select(rules.end, log_prob(ending));
  }
};

// The lane with the largest sum; of several such lanes, the lowest. If no lane has a candidate,
// kWarp.
__device__ int best_lane(const Continuations& own) {
  int lane = own.any ? static_cast<int>(threadIdx.x) % kWarp : kWarp;
  double sum = own.sum;
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const int other = __shfl_xor_sync(~0u, lane, step);
    const double theirs = __shfl_xor_sync(~0u, sum, step);
    if (other == kWarp) continue;
    if (lane != kWarp && (sum > theirs || (sum == theirs && lane < other))) continue;
    lane = other;
    sum = theirs;
  }
  return lane;
}

// Selects the next words by the rules of Beam::advance(). Each warp works for one sentence, and
// each lane for one row of that sentence.
__global__ void choose_words(const Sentences all, const RankedRows in, const StepRules rules) {
  const int s = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (s >= all.count || all.alive[s] == 0) return;
  double* const log_probs = all.log_probs + s * all.width;
  double* const ended = all.ended + s * all.n_best;
  const int first = all.first[s];
  Continuations continuations{};
  if (lane < all.alive[s]) {
    const int64_t row = first + lane;
    const bool at_limit = rules.step + 1 >= all.max_lengths[s];
    continuations = {log_probs[lane],        in.log_sum[row],         in.scores.row(row)[rules.end],
                     in.values + row * in.k, in.columns + row * in.k, at_limit ? 0 : in.k};
    in.endings[row] = continuations.ending;
    continuations.advance(rules);
  }
  __syncwarp();  // all lanes have read log_probs, which lane 0 now overwrites
  int alive = 0;
  double leading = 0;
  for (int kept = 0; kept < all.width; ++kept) {
    const int lane_of_best = best_lane(continuations);
    if (lane_of_best == kWarp) break;
    const double sum = __shfl_sync(~0u, continuations.sum, lane_of_best);
    const int32_t word = __shfl_sync(~0u, continuations.word, lane_of_best);
    if (lane == lane_of_best) continuations.advance(rules);
    if (word != rules.end) {
      if (alive == 0) leading = sum;
      if (lane == 0) {
        all.words[s * all.width + alive] = word;
        all.parents[s * all.width + alive] = first + lane_of_best;
        log_probs[alive] = sum;
      }
      ++alive;
    } else if (lane == 0) {
      double score = sum / rules.length;
      for (int i = 0; i < all.n_best; ++i) {
        const double old = ended[i];
        if (!(score > old)) continue;
        ended[i] = score;
        score = old;
      }
    }
  }
  if (lane != 0) return;
  // The bound of Note [Early stop].
  const double bound = leading / (rules.rising ? all.limits[s] : rules.next_length);
  const bool finished = rules.early_stop && ended[all.n_best - 1] > bound;
  all.alive[s] = finished ? 0 : alive;
}

// Where the kernel writes a copy of the next rows for the host.
struct ReportedRows {
  int32_t *rows, *words, *parents;
};

// Writes the next rows of all sentences, sorted by sentence. REQUIRES: the launch has one block.
__global__ void __launch_bounds__(kThreads)
    collect_rows(const Sentences all, const NextRows to, const ReportedRows reported) {
  __shared__ int prefix_sums[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  int rows = 0;
  for (int s = thread; s - thread < all.count; s += kThreads) {
    const int alive = s < all.count ? all.alive[s] : 0;
    prefix_sums[thread] = alive;
    __syncthreads();
    for (int step = 1; step < kThreads; step *= 2) {
      const int more = thread >= step ? prefix_sums[thread - step] : 0;
      __syncthreads();
      prefix_sums[thread] += more;
      __syncthreads();
    }
    const int first = rows + prefix_sums[thread] - alive;
    if (s < all.count) all.first[s] = first;
    for (int i = 0; i < alive; ++i) {
      reported.words[first + i] = to.words[first + i] = all.words[s * all.width + i];
      reported.parents[first + i] = to.parents[first + i] = all.parents[s * all.width + i];
      to.source_first[first + i] = all.source_first[s];
      to.source_words[first + i] = all.source_words[s];
    }
    rows += prefix_sums[kThreads - 1];
    __syncthreads();
  }
  for (int r = thread; r < to.capacity; r += kThreads) to.places[r] = to.place;
  for (int r = rows + thread; r < to.capacity; r += kThreads) {
    to.words[r] = to.parents[r] = 0;
    to.source_first[r] = to.source_words[r] = 0;
  }
  if (thread == 0) *reported.rows = to.header->rows = rows;
}

// The block that is copied to the host after each step. Each function returns the offset of an
// array in the block, in units of 4 bytes. The first array, log_sum, is at 0.
struct HostCopyLayout {
  int64_t rows = 0, k = 0, next = 0;

  int64_t values() const { return rows; }
  int64_t columns() const { return values() + rows * k; }
  int64_t endings() const { return columns() + rows * k; }
  int64_t alive() const { return endings() + rows; }
  int64_t words() const { return alive() + 1; }
  int64_t parents() const { return words() + next; }
  int64_t size() const { return parents() + next; }
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * sizeof(float); }
};

// Cuts a block of memory into arrays, one after another.
struct ArrayCutter {
  std::byte* at;
  template <class T>
  T* take(int64_t count) {
    T* const start = reinterpret_cast<T*>(at);
    at += static_cast<std::size_t>(count) * sizeof(T);
    return start;
  }
};

// The number of bytes of the block that cut() cuts. Arrays of 8-byte numbers are first in it, so
// that they are aligned.
std::size_t bytes_for(int count, const BeamRules& rules) {
  const auto wide = static_cast<std::size_t>(count * (rules.width + rules.n_best + 1));
  const auto narrow = static_cast<std::size_t>(count * (2 * rules.width + 5));
  return wide * sizeof(double) + narrow * sizeof(int32_t);
}
Sentences cut(std::byte* start, int count, const BeamRules& rules) {
  Sentences all{};
  all.count = count;
  all.width = static_cast<int>(rules.width);
  all.n_best = static_cast<int>(rules.n_best);
  ArrayCutter cutter{start};
  all.log_probs = cutter.take<double>(count * rules.width);
  all.ended = cutter.take<double>(count * rules.n_best);
  all.limits = cutter.take<double>(count);
  all.max_lengths = cutter.take<int32_t>(count);
  all.source_first = cutter.take<int32_t>(count);
  all.source_words = cutter.take<int32_t>(count);
  all.alive = cutter.take<int32_t>(count);
  all.first = cutter.take<int32_t>(count);
  all.words = cutter.take<int32_t>(count * rules.width);
  all.parents = cutter.take<int32_t>(count * rules.width);
  return all;
}

class CudaDeviceBeam : public DeviceBeam {
 public:
  explicit CudaDeviceBeam(Cuda on) : on_(on) {
    check_cuda(cudaEventCreateWithFlags(&copied_, cudaEventDisableTiming),
               "cannot create an event");
  }
  ~CudaDeviceBeam() override { cudaEventDestroy(copied_); }
  CudaDeviceBeam(const CudaDeviceBeam&) = delete;
  CudaDeviceBeam& operator=(const CudaDeviceBeam&) = delete;

  void start(const BeamRules& rules, std::span<const int32_t> offsets) override {
    assert(rules.width <= kMostSteered && std::ssize(rules.banned) <= kMostBanned);
    rules_ = rules;
    step_ = 0;
    const auto count = static_cast<int>(offsets.size()) - 1;
    start_sentences(count, offsets);
    const int64_t most = count * rules.width;  // number of rows; with padding at most 2 · most or 4
    device_bytes_ = HostCopyLayout{most, rules.candidates, 2 * most + 4}.bytes();
    device_result_ = allocate(device_bytes_, on_);
    if (host_bytes_ >= device_bytes_) return;
    void* pinned = nullptr;
    check_cuda(cudaMallocHost(&pinned, device_bytes_), "cannot allocate pinned memory");
    host_result_ = Buffer(static_cast<std::byte*>(pinned), [](std::byte* p) { cudaFreeHost(p); });
    host_bytes_ = device_bytes_;
  }

  void rank(Matrix<const float> scores) override {
    scores_ = scores;
    layout_ = {scores.rows, rules_.candidates, 0};
    assert(layout_.bytes() <= device_bytes_);
    top_k<float>(on_, scores, device_array<float>(0),
                 {device_array<float>(layout_.values()), scores.rows, layout_.k},
                 {device_array<int32_t>(layout_.columns()), scores.rows, layout_.k});
  }

  void choose(const NextRows& next) override {
    layout_.next = next.capacity;
    assert(layout_.bytes() <= device_bytes_);
    const RankedRows in{device_array<float>(0),
                        device_array<float>(layout_.values()),
                        device_array<int32_t>(layout_.columns()),
                        scores_,
                        device_array<float>(layout_.endings()),
                        static_cast<int>(layout_.k)};
    const unsigned blocks = blocks_for(all_.count, kWarps);
    choose_words<<<blocks, kWarps * kWarp, 0, stream(on_)>>>(all_, in, rules());
    if (next.capacity > 0)
      collect_rows<<<1, kThreads, 0, stream(on_)>>>(
          all_, next,
          {device_array<int32_t>(layout_.alive()), device_array<int32_t>(layout_.words()),
           device_array<int32_t>(layout_.parents())});
    check_launch("choose");
    check_cuda(cudaMemcpyAsync(host_result_.get(), device_result_.get(), layout_.bytes(),
                               cudaMemcpyDeviceToHost, stream(on_)),
               "cannot download");
    check_cuda(cudaEventRecord(copied_, stream(on_)), "cannot record an event");
    sent_layout_ = layout_;
    ++step_;
  }

  const BeamStepResult& result() override {
    check_cuda(cudaEventSynchronize(copied_), "cannot wait for the device");
    const Device host = Cpu{};
    const int64_t rows = sent_layout_.rows, k = sent_layout_.k;
    result_.best = {
        Tensor({rows}, ElementType::f32, host, host_result_, 0),
        Tensor({rows, k}, ElementType::f32, host, host_result_, sent_layout_.values()),
        Tensor({rows, k}, ElementType::i32, host, host_result_, sent_layout_.columns())};
    result_.endings = Tensor({rows}, ElementType::f32, host, host_result_, sent_layout_.endings());
    const auto* const numbers = reinterpret_cast<const int32_t*>(host_result_.get());
    const auto alive =
        static_cast<std::size_t>(sent_layout_.next > 0 ? numbers[sent_layout_.alive()] : 0);
    result_.words = {numbers + sent_layout_.words(), alive};
    result_.parents = {numbers + sent_layout_.parents(), alive};
    return result_;
  }

  void forget() override { sentences_ = device_result_ = {}; }

 private:
  template <class T>
  T* device_array(int64_t at) const {
    return reinterpret_cast<T*>(device_result_.get()) + at;
  }

  // Each sentence starts with one row without words, and without finished hypotheses.
  void start_sentences(int count, std::span<const int32_t> offsets) {
    std::vector<std::byte> image(bytes_for(count, rules_));
    const Sentences here = cut(image.data(), count, rules_);
    std::fill_n(here.ended, count * rules_.n_best, -std::numeric_limits<double>::infinity());
    for (int s = 0; s < count; ++s) {
      const int32_t max_length = rules_.max_lengths[static_cast<std::size_t>(s)];
      here.limits[s] = std::pow(max_length, rules_.length_penalty);
      here.max_lengths[s] = max_length;
      here.source_first[s] = offsets[s];
      here.source_words[s] = offsets[s + 1] - offsets[s];
      here.alive[s] = 1;
      here.first[s] = s;
    }
    sentences_ = allocate(image.size(), on_);
    upload(image.data(), sentences_.get(), image.size(), on_);
    all_ = cut(sentences_.get(), count, rules_);
  }

  StepRules rules() const {
    const auto to_alpha = [&](int64_t length) {
      return std::pow(static_cast<double>(length), rules_.length_penalty);
    };
    StepRules r{.step = static_cast<int>(step_),
                .length = to_alpha(step_ + 1),
                .next_length = to_alpha(step_ + 2),
                .early_stop = rules_.early_stop,
                .rising = rules_.length_penalty >= 0,
                .end = rules_.end,
                .banned_count = static_cast<int32_t>(rules_.banned.size()),
                .banned = {}};
    std::ranges::copy(rules_.banned, r.banned);
    return r;
  }

  Cuda on_;
  BeamRules rules_{};
  Sentences all_{};
  Buffer sentences_, device_result_, host_result_;  // host_result_: pinned host memory
  std::size_t device_bytes_ = 0, host_bytes_ = 0;   // numbers of bytes of both result buffers
  HostCopyLayout layout_, sent_layout_;
  Matrix<const float> scores_{};
  cudaEvent_t copied_ = nullptr;
  int64_t step_ = 0;
  BeamStepResult result_;
};

}  // namespace

std::unique_ptr<DeviceBeam> chooser(Cuda on) { return std::make_unique<CudaDeviceBeam>(on); }

}  // namespace fovea::kernel

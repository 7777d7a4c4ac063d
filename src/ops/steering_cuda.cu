#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "ops/steering_kernel.h"
#include "ops/topk_kernel.h"
#include "ops/warp.cuh"
#include "tensor/cuda.h"
#include "tensor/memory.h"

namespace fovea::kernel {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 512;
constexpr int kMostBanned = 4;
static_assert(kMostSteered <= kWarp);  // a lane for each

// What is known of each sentence, alive or not.
struct Sentences {
  int count, width, n_best;
  double* log_probs;  // [count, width]: of what is alive
  double* ended;      // [count, n_best]: the best scores so far, best first
  double* limits;     // max_length^α
  int32_t *max_lengths, *source_first, *source_words;
  int32_t *alive, *first;    // rows, and the first of them
  int32_t *words, *parents;  // [count, width]: of the rows to come
};

// A step's rows, and what the host is told of them.
struct Ranked {
  const float *log_sum, *values;
  const int32_t* columns;
  Matrix<const float> scores;
  float* endings;
  int k;
};

struct Rules {
  int step;                    // words before those that are chosen
  double length, next_length;  // ^ α, the words chosen counted
  bool early_stop, rising;     // α ≥ 0
  int32_t end, bans;
  int32_t banned[kMostBanned];

  __device__ bool allow(int32_t word) const {
    bool good = word >= 0;
    for (int i = 0; i < bans; ++i) good = good && word != banned[i];
    return good;
  }
};

// The ways to go on from a row, best first.
struct Ways {
  double before;  // log-probability of the row
  float log_sum, ending;
  const float* values;
  const int32_t* columns;
  int left;          // of the columns
  bool none = true;  // so far
  bool any = false;  // whether there is one: sum and word
  double sum = 0;
  int32_t word = -1;

  __device__ double log_prob(float score) const {
    const double p = static_cast<double>(score) - static_cast<double>(log_sum);
    return p < 0 ? p : 0;
  }
  __device__ void offer(int32_t next, double p) {
    any = true;
    none = false;
    word = next;
    sum = before + p;
  }
  __device__ void advance(const Rules& rules) {
    any = false;
    while (left > 0 && !any) {
      const double p = log_prob(*values);
      if (rules.allow(*columns) && p > kImpossible) offer(*columns, p);
      ++values, ++columns, --left;
    }
    if (none) offer(rules.end, log_prob(ending));
  }
};

// Which lane has the largest sum, of equal ones the first; kWarp: none has any.
__device__ int best_lane(const Ways& own) {
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

// A warp has a sentence, a lane one of its rows: Beam::advance().
__global__ void choose_words(const Sentences all, const Ranked in, const Rules rules) {
  const int s = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  if (s >= all.count || all.alive[s] == 0) return;
  double* const log_probs = all.log_probs + s * all.width;
  double* const ended = all.ended + s * all.n_best;
  const int first = all.first[s];
  Ways ways{};
  if (lane < all.alive[s]) {
    const int64_t row = first + lane;
    const bool at_limit = rules.step + 1 >= all.max_lengths[s];
    ways = {log_probs[lane],        in.log_sum[row],         in.scores.row(row)[rules.end],
            in.values + row * in.k, in.columns + row * in.k, at_limit ? 0 : in.k};
    in.endings[row] = ways.ending;
    ways.advance(rules);
  }
  __syncwarp();  // log_probs are written from now on
  int alive = 0;
  double leading = 0;
  for (int kept = 0; kept < all.width; ++kept) {
    const int lane_of_best = best_lane(ways);
    if (lane_of_best == kWarp) break;
    const double sum = __shfl_sync(~0u, ways.sum, lane_of_best);
    const int32_t word = __shfl_sync(~0u, ways.word, lane_of_best);
    if (lane == lane_of_best) ways.advance(rules);
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
        const double there = ended[i];
        if (!(score > there)) continue;
        ended[i] = score;
        score = there;
      }
    }
  }
  if (lane != 0) return;
  // Note [Early stop]
  const double bound = leading / (rules.rising ? all.limits[s] : rules.next_length);
  const bool settled = rules.early_stop && ended[all.n_best - 1] > bound;
  all.alive[s] = settled ? 0 : alive;
}

struct Told {
  int32_t *rows, *words, *parents;
};

// One block: the rows of all sentences stand one behind the other.
__global__ void __launch_bounds__(kThreads)
    line_up(const Sentences all, const NextRows to, const Told told) {
  __shared__ int up_to[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  int rows = 0;
  for (int s = thread; s - thread < all.count; s += kThreads) {
    const int alive = s < all.count ? all.alive[s] : 0;
    up_to[thread] = alive;
    __syncthreads();
    for (int step = 1; step < kThreads; step *= 2) {
      const int more = thread >= step ? up_to[thread - step] : 0;
      __syncthreads();
      up_to[thread] += more;
      __syncthreads();
    }
    const int first = rows + up_to[thread] - alive;
    if (s < all.count) all.first[s] = first;
    for (int i = 0; i < alive; ++i) {
      told.words[first + i] = to.words[first + i] = all.words[s * all.width + i];
      told.parents[first + i] = to.parents[first + i] = all.parents[s * all.width + i];
      to.source_first[first + i] = all.source_first[s];
      to.source_words[first + i] = all.source_words[s];
    }
    rows += up_to[kThreads - 1];
    __syncthreads();
  }
  for (int r = thread; r < to.room; r += kThreads) to.places[r] = to.place;
  for (int r = rows + thread; r < to.room; r += kThreads) {
    to.words[r] = to.parents[r] = 0;
    to.source_first[r] = to.source_words[r] = 0;
  }
  if (thread == 0) *told.rows = to.header->rows = rows;
}

// Numbers of 4 bytes that go to the host together.
struct Parcel {
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

// Takes the arrays of an image one after another.
struct Cutter {
  std::byte* at;
  template <class T>
  T* take(int64_t count) {
    T* const start = reinterpret_cast<T*>(at);
    at += static_cast<std::size_t>(count) * sizeof(T);
    return start;
  }
};

// All arrays of an image, those with numbers of 8 bytes first.
std::size_t bytes_for(int count, const Steering& rules) {
  const auto wide = static_cast<std::size_t>(count * (rules.width + rules.n_best + 1));
  const auto narrow = static_cast<std::size_t>(count * (2 * rules.width + 5));
  return wide * sizeof(double) + narrow * sizeof(int32_t);
}
Sentences cut(std::byte* start, int count, const Steering& rules) {
  Sentences all{};
  all.count = count;
  all.width = static_cast<int>(rules.width);
  all.n_best = static_cast<int>(rules.n_best);
  Cutter cutter{start};
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

class CudaChooser : public Chooser {
 public:
  explicit CudaChooser(Cuda on) : on_(on) {
    check_cuda(cudaEventCreateWithFlags(&arrived_, cudaEventDisableTiming), "making an event");
  }
  ~CudaChooser() override { cudaEventDestroy(arrived_); }
  CudaChooser(const CudaChooser&) = delete;
  CudaChooser& operator=(const CudaChooser&) = delete;

  void start(const Steering& rules, std::span<const int32_t> offsets) override {
    assert(rules.width <= kMostSteered && std::ssize(rules.banned) <= kMostBanned);
    rules_ = rules;
    step_ = 0;
    const auto count = static_cast<int>(offsets.size()) - 1;
    begin_sentences(count, offsets);
    const int64_t most = count * rules.width;  // rows are filled up to twice as many, or to 4
    room_ = Parcel{most, rules.candidates, 2 * most + 4}.bytes();
    parcel_ = allocate(room_, on_);
    if (room_here_ >= room_) return;
    void* pinned = nullptr;
    check_cuda(cudaMallocHost(&pinned, room_), "taking pinned memory");
    here_ = Buffer(static_cast<std::byte*>(pinned), [](std::byte* p) { cudaFreeHost(p); });
    room_here_ = room_;
  }

  void rank(Matrix<const float> scores) override {
    scores_ = scores;
    layout_ = {scores.rows, rules_.candidates, 0};
    assert(layout_.bytes() <= room_);
    top_k<float>(on_, scores, there<float>(0),
                 {there<float>(layout_.values()), scores.rows, layout_.k},
                 {there<int32_t>(layout_.columns()), scores.rows, layout_.k});
  }

  void choose(const NextRows& next) override {
    layout_.next = next.room;
    assert(layout_.bytes() <= room_);
    const Ranked in{
        there<float>(0), there<float>(layout_.values()),  there<int32_t>(layout_.columns()),
        scores_,         there<float>(layout_.endings()), static_cast<int>(layout_.k)};
    const unsigned blocks = blocks_for(all_.count, kWarps);
    choose_words<<<blocks, kWarps * kWarp, 0, stream(on_)>>>(all_, in, rules());
    if (next.room > 0)
      line_up<<<1, kThreads, 0, stream(on_)>>>(
          all_, next,
          {there<int32_t>(layout_.alive()), there<int32_t>(layout_.words()),
           there<int32_t>(layout_.parents())});
    check_launch("choose");
    check_cuda(cudaMemcpyAsync(here_.get(), parcel_.get(), layout_.bytes(), cudaMemcpyDeviceToHost,
                               stream(on_)),
               "downloading");
    check_cuda(cudaEventRecord(arrived_, stream(on_)), "recording an event");
    sent_ = layout_;
    ++step_;
  }

  const Steered& told() override {
    check_cuda(cudaEventSynchronize(arrived_), "waiting for the device");
    const Device host = Cpu{};
    const int64_t rows = sent_.rows, k = sent_.k;
    told_.best = {Tensor({rows}, Type::f32, host, here_, 0),
                  Tensor({rows, k}, Type::f32, host, here_, sent_.values()),
                  Tensor({rows, k}, Type::i32, host, here_, sent_.columns())};
    told_.endings = Tensor({rows}, Type::f32, host, here_, sent_.endings());
    const auto* const numbers = reinterpret_cast<const int32_t*>(here_.get());
    const auto alive = static_cast<std::size_t>(sent_.next > 0 ? numbers[sent_.alive()] : 0);
    told_.words = {numbers + sent_.words(), alive};
    told_.parents = {numbers + sent_.parents(), alive};
    return told_;
  }

  void forget() override { sentences_ = parcel_ = {}; }

 private:
  template <class T>
  T* there(int64_t at) const {
    return reinterpret_cast<T*>(parcel_.get()) + at;
  }

  // Each has a row with nothing in it and nothing that has ended.
  void begin_sentences(int count, std::span<const int32_t> offsets) {
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

  Rules rules() const {
    const auto to_alpha = [&](int64_t length) {
      return std::pow(static_cast<double>(length), rules_.length_penalty);
    };
    Rules r{.step = static_cast<int>(step_),
            .length = to_alpha(step_ + 1),
            .next_length = to_alpha(step_ + 2),
            .early_stop = rules_.early_stop,
            .rising = rules_.length_penalty >= 0,
            .end = rules_.end,
            .bans = static_cast<int32_t>(rules_.banned.size()),
            .banned = {}};
    std::ranges::copy(rules_.banned, r.banned);
    return r;
  }

  Cuda on_;
  Steering rules_{};
  Sentences all_{};
  Buffer sentences_, parcel_, here_;      // here_: on the host, where the device can write
  std::size_t room_ = 0, room_here_ = 0;  // of parcel_, of here_
  Parcel layout_, sent_;
  Matrix<const float> scores_{};
  cudaEvent_t arrived_ = nullptr;
  int64_t step_ = 0;
  Steered told_;
};

}  // namespace

std::unique_ptr<Chooser> chooser(Cuda on) { return std::make_unique<CudaChooser>(on); }

}  // namespace fovea::kernel

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "cache/device_beam_kernel.h"
#include "gemm/gemm.h"
#include "ops/matmul.h"
#include "tensor/graph.h"
#include "tensor/memory.h"

namespace fovea::kernel {
namespace {

constexpr int64_t kStepsPerChunk = 8;  // number of steps whose pages are allocated together

// Rounds the number of rows up to one of a few values, because each number of rows has its own
// captured graph.
int64_t padded_rows(int64_t rows) {
  if (rows > 256) return (rows + 127) / 128 * 128;
  int64_t capacity = 4;
  while (capacity < rows) capacity *= 2;
  return capacity >= 32 && rows <= capacity / 4 * 3 ? capacity / 4 * 3 : capacity;
}

// A step with `capacity` rows: the memory of its inputs, and its captured computation. `constant`
// is the tensor that DecoderMemory::Next passes.
struct StepPlan {
  enum Array { words, places, parents, source_first, source_words, kArrays };
  int64_t capacity;
  Buffer control;  // on the device: a StepHeader, then the arrays
  std::vector<std::byte> image;
  int uses = 0;
  uint64_t version = 0;
  Tensor constant, scores;
  Graph graph;

  static constexpr std::size_t kHeader = 64;
  static_assert(sizeof(StepHeader) <= kHeader);

  StepPlan(int64_t rows, Device device) : capacity(rows), image(offset(kArrays)) {
    control = allocate(image.size(), device);
  }
  std::size_t offset(int array) const {
    return kHeader + static_cast<std::size_t>(array * capacity) * sizeof(int32_t);
  }
  int32_t* on_host(Array array) { return reinterpret_cast<int32_t*>(image.data() + offset(array)); }
  const int32_t* on_device(Array array) const {
    return reinterpret_cast<const int32_t*>(control.get() + offset(array));
  }
  Tensor tensor(Array array, Device device) const {
    return {{capacity},
            ElementType::i32,
            device,
            control,
            static_cast<int64_t>(offset(array) / sizeof(int32_t))};
  }
  StepControl step_control() const {
    return {reinterpret_cast<const StepHeader*>(control.get()), on_device(parents),
            on_device(source_first), on_device(source_words), capacity};
  }
  NextRows next_rows(int32_t place) {
    const auto at = [&](Array array) { return const_cast<int32_t*>(on_device(array)); };
    return {reinterpret_cast<StepHeader*>(control.get()),
            at(words),
            at(places),
            at(parents),
            at(source_first),
            at(source_words),
            capacity,
            place};
  }
  // If parameters have changed or the constant has another address, discards the captured graph.
  void discard_if_stale(const Tensor& now, uint64_t parameters) {
    const auto address = [](const Tensor& t) -> const void* {
      if (t && t.type() == ElementType::i32) return t.data<int32_t>();
      return t.data<float>();
    };
    const bool same = version == parameters && address(constant) == address(now);
    if (uses > 0 && same) return;
    graph = {};
    uses = 0;
    version = parameters;
    constant = now;
  }
};

// The table of slots: the slot of each word of each row (Note [Pages of steps]).
struct Table {
  Buffer data;
  int64_t rows = 0, stride = 0;

  int32_t* slots() const { return reinterpret_cast<int32_t*>(data.get()); }
  void reserve(int64_t needed_rows, int64_t needed_stride, Device device) {
    if (rows >= needed_rows && stride >= needed_stride) return;
    const int64_t more = std::max(rows, needed_rows);
    const int64_t longer =
        std::max<int64_t>({64, stride, needed_stride > stride ? 2 * needed_stride : 0});
    // If the allocation throws, the table does not change: another search may still use it.
    data = allocate(static_cast<std::size_t>(more * longer) * sizeof(int32_t), device);
    rows = more;
    stride = longer;
  }
};

// The key/value cache on a GPU: Note [Pages of steps].
class CudaKvCache : public DecoderMemory {
 public:
  CudaKvCache(Cuda on, const DecoderShape& shape) : on_(on), shape_(shape) {}

  void start(std::vector<Tensor> source_kv, std::span<const int32_t> offsets) override {
    source_kv_ = std::move(source_kv);
    offsets_.assign(offsets.begin(), offsets.end());
    sentence_.resize(offsets.size() - 1);
    std::iota(sentence_.begin(), sentence_.end(), 0);
    parents_ = sentence_;
    chunks_.clear();
    pages_.clear();
    for (const Tensor& kv : source_kv_) pages_.push_back(kv.buffer().get());
    steps_ = reserved_steps_ = reserved_rows_ = 0;
  }

  void forget() override {
    source_kv_.clear();
    chunks_.clear();
    device_pages_ = {};
    if (device_beam_) device_beam_->forget();
  }

  void reorder(std::span<const int32_t> parents) override {
    std::vector<int32_t> sentence, from;
    sentence.reserve(parents.size());
    from.reserve(parents.size());
    for (const int32_t parent : parents) {
      sentence.push_back(sentence_[static_cast<size_t>(parent)]);
      from.push_back(parents_[static_cast<size_t>(parent)]);
    }
    sentence_ = std::move(sentence);
    parents_ = std::move(from);
  }

  Tensor step(const Next& next, const Compute& compute) override {
    assert(static_cast<int64_t>(next.words.size()) == rows());
    StepPlan& plan = prepared(rows(), next);
    send(plan, next);
    run_step(plan, compute);
    parents_.resize(sentence_.size());
    std::iota(parents_.begin(), parents_.end(), 0);
    return plan.scores.window(0, rows());
  }

  void start_device_search(const BeamRules& rules) override {
    if (!device_beam_) device_beam_ = chooser(on_);
    device_beam_->start(rules, offsets_);
  }

  const BeamStepResult& device_step(int64_t capacity, const Next& next,
                                    const Compute& compute) override {
    static const BeamStepResult kNoResult;
    const bool first = steps_ == 0;
    if (capacity == 0) {
      device_beam_->choose({});
      return device_beam_->result();
    }
    StepPlan& plan = prepared(capacity, next);
    if (first) {
      send(plan, next);
    } else {
      send_header(plan);
      device_beam_->choose(plan.next_rows(next.place));
    }
    run_step(plan, compute);
    device_beam_->rank(plan.scores.window(0, capacity).in<float>());
    return first ? kNoResult : device_beam_->result();
  }

  Tensor attend_words(int64_t layer, const Tensor& qkv, const Tensor& distance_scores) override {
    const auto distances = DistanceScores<float>::of(distance_scores);
    return attend(layer, qkv, [&]<class T>(StepAttention<T> in) {
      in.distances = distances;
      kernel::attend_words<T>(on_, in);
    });
  }
  Tensor average_words(int64_t layer, const Tensor& f, const Tensor& x) override {
    Tensor y({x.rows(), shape_.state}, ElementType::f32, on_);
    kernel::average_words(on_, {current_->step_control(), f.in<float>(), x.in<float>(),
                                shape_.layers, layer, y.out<float>()});
    return y;
  }
  Tensor attend_source(int64_t layer, const Tensor& q) override {
    return attend(layer, q,
                  [&]<class T>(const StepAttention<T>& in) { kernel::attend_source<T>(on_, in); });
  }

  Tensor scores(const Tensor& x, const Tensor& W, const Tensor& b) override {
    Tensor& y = current_->scores;
    if (!y) {
      if (!scores_ || scores_.rows() < x.rows())
        scores_ = Tensor({x.rows(), W.size(0)}, ElementType::f32, on_);
      y = scores_.window(0, x.rows());
    }
    multiply({as_operand(x), Transposition::as_is, as_operand(W), Transposition::transposed}, y, b,
             OutputMode::set);
    return y;
  }

  int64_t rows() const override { return static_cast<int64_t>(sentence_.size()); }
  int64_t steps() const override { return steps_; }

 private:
  StepPlan& plan_for(int64_t capacity) {
    const std::pair key{capacity, PrecisionScope::current()};
    const auto found = plans_.find(key);
    return found != plans_.end() ? found->second
                                 : plans_.try_emplace(key, capacity, on_).first->second;
  }

  StepPlan& prepared(int64_t rows, const Next& next) {
    StepPlan& plan = plan_for(padded_rows(rows));
    plan.discard_if_stale(next.constant, parameters_version());
    reserve_pages(plan.capacity);
    return plan;
  }

  // Reserves pages for kStepsPerChunk steps, beginning with this one. In the first step, reserves
  // pages for this step only, because later steps have more rows.
  void reserve_pages(int64_t rows) {
    table_.reserve(rows, steps_ + 1, on_);
    if (steps_ < reserved_steps_ && rows <= reserved_rows_) return;
    reserved_rows_ = rows;
    reserved_steps_ = steps_ + (steps_ == 0 ? 1 : kStepsPerChunk);
    const Tensor& like = source_kv_[0];
    const std::size_t line = shape_.state > 0
                                 ? static_cast<std::size_t>(shape_.state) * sizeof(float)
                                 : static_cast<std::size_t>(like.cols()) * bytes_of(like.type());
    const std::size_t page = static_cast<std::size_t>(rows) * line;
    const auto count = static_cast<std::size_t>((reserved_steps_ - steps_) * shape_.layers);
    chunks_.push_back(allocate(page * count, on_));
    pages_.resize(static_cast<std::size_t>((1 + steps_) * shape_.layers));
    for (std::size_t i = 0; i < count; ++i) pages_.push_back(chunks_.back().get() + i * page);
    const std::size_t bytes = pages_.size() * sizeof(pages_[0]);
    device_pages_ = allocate(bytes, on_);
    upload(reinterpret_cast<const std::byte*>(pages_.data()), device_pages_.get(), bytes, on_);
  }

  StepHeader header() const {
    return {static_cast<int32_t>(rows()),
            static_cast<int32_t>(steps_),
            previous_table_.slots(),
            table_.slots(),
            static_cast<int32_t>(previous_table_.stride),
            static_cast<int32_t>(table_.stride),
            reinterpret_cast<const void* const*>(device_pages_.get())};
  }

  void send_header(const StepPlan& plan) const {
    const StepHeader now = header();
    upload(reinterpret_cast<const std::byte*>(&now), plan.control.get(), sizeof(now), on_);
  }

  void send(StepPlan& plan, const Next& next) const {
    const StepHeader now = header();
    std::memcpy(plan.image.data(), &now, sizeof(now));
    std::ranges::copy(next.words, plan.on_host(StepPlan::words));
    std::fill_n(plan.on_host(StepPlan::places), plan.capacity, next.place);
    std::ranges::copy(parents_, plan.on_host(StepPlan::parents));
    int32_t *first = plan.on_host(StepPlan::source_first),
            *words = plan.on_host(StepPlan::source_words);
    for (std::size_t r = 0; r < sentence_.size(); ++r) {
      const auto b = static_cast<std::size_t>(sentence_[r]);
      first[r] = offsets_[b];
      words[r] = offsets_[b + 1] - offsets_[b];
    }
    upload(plan.image.data(), plan.control.get(), plan.image.size(), on_);
  }

  // Runs the work of a plan. The first time, it runs the work directly. The second time, it
  // captures the work as a graph. From then on, it replays the graph.
  void run_step(StepPlan& plan, const Compute& compute) {
    const auto work = [&] {
      extend_table(on_, plan.step_control());
      compute({plan.tensor(StepPlan::words, on_), plan.tensor(StepPlan::places, on_)});
    };
    current_ = &plan;
    if (plan.uses == 1) plan.graph = Graph::captured(on_, work);
    if (plan.graph)
      plan.graph.replay();
    else
      work();
    ++plan.uses;
    std::swap(previous_table_, table_);
    ++steps_;
  }

  template <class Launch>
  Tensor attend(int64_t layer, const Tensor& q, Launch launch) const {
    Tensor y({q.rows(), shape_.size}, q.type(), on_);
    const auto with = [&]<class T>(T) {
      launch(StepAttention<T>{current_->step_control(), q.in<T>(), shape_.layers, layer,
                              shape_.heads, y.out<T>()});
    };
    if (q.type() == ElementType::bf16)
      with(bf16{});
    else
      with(float{});
    return y;
  }

  Cuda on_;
  DecoderShape shape_;
  std::vector<Tensor> source_kv_;
  std::vector<int32_t> offsets_, sentence_, parents_;
  std::vector<Buffer> chunks_;
  std::vector<const void*> pages_;
  Buffer device_pages_;
  Table previous_table_, table_;
  int64_t steps_ = 0, reserved_steps_ = 0, reserved_rows_ = 0;
  Tensor scores_;  // all plans write their scores to this memory
  std::map<std::pair<int64_t, Precision>, StepPlan> plans_;
  StepPlan* current_ = nullptr;
  std::unique_ptr<DeviceBeam> device_beam_;
};

}  // namespace

std::unique_ptr<DecoderMemory> decoder_memory(Cuda on, const DecoderShape& shape) {
  return std::make_unique<CudaKvCache>(on, shape);
}

}  // namespace fovea::kernel

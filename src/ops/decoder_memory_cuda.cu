#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "ops/matmul.h"
#include "ops/product.h"
#include "ops/steering_kernel.h"
#include "tensor/graph.h"
#include "tensor/memory.h"

namespace fovea::kernel {
namespace {

constexpr int64_t kStepsOfRoom = 8;  // that a chunk of pages is for

// Rows are filled up to one of a few numbers, each of which has a recording.
int64_t room_for(int64_t rows) {
  if (rows > 256) return (rows + 127) / 128 * 128;
  int64_t room = 4;
  while (room < rows) room *= 2;
  return room >= 32 && rows <= room / 4 * 3 ? room / 4 * 3 : room;
}

// A step for so many rows: where it finds its rows, and what it does with them.
struct Plan {
  enum Array { words, places, parents, source_first, source_words, kArrays };
  int64_t room;
  Buffer control;  // a StepHeader, then the arrays
  std::vector<std::byte> image;
  int uses = 0;
  uint64_t version = 0;
  Tensor constant, scores;
  Graph graph;

  static constexpr std::size_t kHeader = 64;
  static_assert(sizeof(StepHeader) <= kHeader);

  Plan(int64_t rows, Device device) : room(rows), image(offset(kArrays)) {
    control = allocate(image.size(), device);
  }
  std::size_t offset(int array) const {
    return kHeader + static_cast<std::size_t>(array * room) * sizeof(int32_t);
  }
  int32_t* host(Array array) { return reinterpret_cast<int32_t*>(image.data() + offset(array)); }
  const int32_t* there(Array array) const {
    return reinterpret_cast<const int32_t*>(control.get() + offset(array));
  }
  Tensor tensor(Array array, Device device) const {
    return {
        {room}, Type::i32, device, control, static_cast<int64_t>(offset(array) / sizeof(int32_t))};
  }
  StepControl places_of() const {
    return {reinterpret_cast<const StepHeader*>(control.get()), there(parents), there(source_first),
            there(source_words), room};
  }
  NextRows next_rows(int32_t place) {
    const auto at = [&](Array array) { return const_cast<int32_t*>(there(array)); };
    return {reinterpret_cast<StepHeader*>(control.get()),
            at(words),
            at(places),
            at(parents),
            at(source_first),
            at(source_words),
            room,
            place};
  }
  // What was recorded is of no use where parameters or the constant stand elsewhere now.
  void keep_current(const Tensor& now, uint64_t parameters) {
    const bool same = version == parameters && constant.data<float>() == now.data<float>();
    if (uses > 0 && same) return;
    graph = {};
    uses = 0;
    version = parameters;
    constant = now;
  }
};

// The slots of each row's words (Note [Pages of steps]).
struct Table {
  Buffer data;
  int64_t rows = 0, stride = 0;

  int32_t* slots() const { return reinterpret_cast<int32_t*>(data.get()); }
  void reserve(int64_t wanted_rows, int64_t wanted_stride, Device device) {
    if (rows >= wanted_rows && stride >= wanted_stride) return;
    const int64_t more = std::max(rows, wanted_rows);
    const int64_t longer =
        std::max<int64_t>({64, stride, wanted_stride > stride ? 2 * wanted_stride : 0});
    // Where there is no memory the table stays as it was: another search may use it.
    data = allocate(static_cast<std::size_t>(more * longer) * sizeof(int32_t), device);
    rows = more;
    stride = longer;
  }
};

class CudaMemory : public DecoderMemory {
 public:
  CudaMemory(Cuda on, const DecoderShape& shape) : on_(on), shape_(shape) {}

  void start(std::vector<Tensor> source_kv, std::span<const int32_t> offsets) override {
    source_kv_ = std::move(source_kv);
    offsets_.assign(offsets.begin(), offsets.end());
    sentence_.resize(offsets.size() - 1);
    std::iota(sentence_.begin(), sentence_.end(), 0);
    parents_ = sentence_;
    chunks_.clear();
    pages_.clear();
    for (const Tensor& kv : source_kv_) pages_.push_back(kv.buffer().get());
    steps_ = room_steps_ = room_rows_ = 0;
  }

  void forget() override {
    source_kv_.clear();
    chunks_.clear();
    pages_there_ = {};
    if (chooser_) chooser_->forget();
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
    Plan& plan = prepared(rows(), next);
    send(plan, next);
    do_step(plan, compute);
    parents_.resize(sentence_.size());
    std::iota(parents_.begin(), parents_.end(), 0);
    return plan.scores.window(0, rows());
  }

  bool steer(const Steering& rules) override {
    if (!chooser_) chooser_ = chooser(on_);
    chooser_->start(rules, offsets_);
    return true;
  }

  const Steered& step_ahead(int64_t room, const Next& next, const Compute& compute) override {
    static const Steered kNothing;
    const bool first = steps_ == 0;
    if (room == 0) {
      chooser_->choose({});
      return chooser_->told();
    }
    Plan& plan = prepared(room, next);
    if (first) {
      send(plan, next);
    } else {
      send_header(plan);
      chooser_->choose(plan.next_rows(next.place));
    }
    do_step(plan, compute);
    chooser_->rank(plan.scores.window(0, room).in<float>());
    return first ? kNothing : chooser_->told();
  }

  Tensor attend_words(int64_t layer, const Tensor& qkv) override {
    return attend(layer, qkv,
                  [&]<class T>(const StepAttention<T>& in) { kernel::attend_words<T>(on_, in); });
  }
  Tensor attend_source(int64_t layer, const Tensor& q) override {
    return attend(layer, q,
                  [&]<class T>(const StepAttention<T>& in) { kernel::attend_source<T>(on_, in); });
  }

  Tensor scores(const Tensor& x, const Tensor& W, const Tensor& b) override {
    Tensor& y = current_->scores;
    if (!y) {
      if (!scores_ || scores_.rows() < x.rows())
        scores_ = Tensor({x.rows(), W.size(0)}, Type::f32, on_);
      y = scores_.window(0, x.rows());
    }
    multiply({as_operand(x), Side::as_is, as_operand(W), Side::transposed}, y, b, Fold::set);
    return y;
  }

  int64_t rows() const override { return static_cast<int64_t>(sentence_.size()); }
  int64_t steps() const override { return steps_; }

 private:
  Plan& plan_for(int64_t room) {
    const std::pair key{room, PrecisionScope::current()};
    const auto found = plans_.find(key);
    return found != plans_.end() ? found->second : plans_.try_emplace(key, room, on_).first->second;
  }

  Plan& prepared(int64_t rows, const Next& next) {
    Plan& plan = plan_for(room_for(rows));
    plan.keep_current(next.constant, parameters_version());
    make_room(plan.room);
    return plan;
  }

  // Pages for the words of this step and the next ones; before search has begun, of this one only,
  // for it will ask for more rows.
  void make_room(int64_t rows) {
    table_.reserve(rows, steps_ + 1, on_);
    if (steps_ < room_steps_ && rows <= room_rows_) return;
    room_rows_ = rows;
    room_steps_ = steps_ + (steps_ == 0 ? 1 : kStepsOfRoom);
    const Tensor& like = source_kv_[0];
    const auto page = static_cast<std::size_t>(rows * like.cols()) * bytes_of(like.type());
    const auto count = static_cast<std::size_t>((room_steps_ - steps_) * shape_.layers);
    chunks_.push_back(allocate(page * count, on_));
    pages_.resize(static_cast<std::size_t>((1 + steps_) * shape_.layers));
    for (std::size_t i = 0; i < count; ++i) pages_.push_back(chunks_.back().get() + i * page);
    const std::size_t bytes = pages_.size() * sizeof(pages_[0]);
    pages_there_ = allocate(bytes, on_);
    upload(reinterpret_cast<const std::byte*>(pages_.data()), pages_there_.get(), bytes, on_);
  }

  StepHeader header() const {
    return {static_cast<int32_t>(rows()),
            static_cast<int32_t>(steps_),
            before_.slots(),
            table_.slots(),
            static_cast<int32_t>(before_.stride),
            static_cast<int32_t>(table_.stride),
            reinterpret_cast<const void* const*>(pages_there_.get())};
  }

  void send_header(const Plan& plan) const {
    const StepHeader now = header();
    upload(reinterpret_cast<const std::byte*>(&now), plan.control.get(), sizeof(now), on_);
  }

  void send(Plan& plan, const Next& next) const {
    const StepHeader now = header();
    std::memcpy(plan.image.data(), &now, sizeof(now));
    std::ranges::copy(next.words, plan.host(Plan::words));
    std::fill_n(plan.host(Plan::places), plan.room, next.place);
    std::ranges::copy(parents_, plan.host(Plan::parents));
    int32_t *first = plan.host(Plan::source_first), *words = plan.host(Plan::source_words);
    for (std::size_t r = 0; r < sentence_.size(); ++r) {
      const auto b = static_cast<std::size_t>(sentence_[r]);
      first[r] = offsets_[b];
      words[r] = offsets_[b + 1] - offsets_[b];
    }
    upload(plan.image.data(), plan.control.get(), plan.image.size(), on_);
  }

  // Does the work at first, captures it the second time, and from then on replays it.
  void do_step(Plan& plan, const Compute& compute) {
    const auto work = [&] {
      extend_table(on_, plan.places_of());
      compute({plan.tensor(Plan::words, on_), plan.tensor(Plan::places, on_)});
    };
    current_ = &plan;
    if (plan.uses == 1) plan.graph = Graph::captured(on_, work);
    if (plan.graph)
      plan.graph.replay();
    else
      work();
    ++plan.uses;
    std::swap(before_, table_);
    ++steps_;
  }

  template <class Launch>
  Tensor attend(int64_t layer, const Tensor& q, Launch launch) const {
    Tensor y({q.rows(), shape_.size}, q.type(), on_);
    const auto with = [&]<class T>(T) {
      launch(StepAttention<T>{current_->places_of(), q.in<T>(), shape_.layers, layer, shape_.heads,
                              y.out<T>()});
    };
    if (q.type() == Type::bf16)
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
  Buffer pages_there_;
  Table before_, table_;
  int64_t steps_ = 0, room_steps_ = 0, room_rows_ = 0;
  Tensor scores_;  // for the most rows so far
  std::map<std::pair<int64_t, Precision>, Plan> plans_;
  Plan* current_ = nullptr;
  std::unique_ptr<Chooser> chooser_;
};

}  // namespace

std::unique_ptr<DecoderMemory> decoder_memory(Cuda on, const DecoderShape& shape) {
  return std::make_unique<CudaMemory>(on, shape);
}

}  // namespace fovea::kernel

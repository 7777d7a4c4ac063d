#include "serve/batcher.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <limits>
#include <tuple>

#include "base/log.h"

namespace fovea {
namespace {

// Note [Turns]
// Only sentences with the same model and the same wish can share a batch: requests wait in as many
// lines as there are of these. A batch takes more of its line as others of it are done, while no
// other line waits of which no batch is under way; then it takes no more, and when it has come to
// its end another line has its turn. Every other turn goes round: the line that has its turn goes
// behind the others. The turns between belong to the line of the request that came first of all. No
// line has two turns together while others wait. So a line waits for no more than two batches for
// each line before it, however long they are; the request that came first has half of the batches,
// however many others come; and a load of one kind is served as if there were no lines. In a line
// requests are served in the order in which they came. Two things differ from that, and cost those
// who are overtaken little: a request of many sentences gives way to the next while enough of them
// are under way, and requests of a few sentences, behind which somebody sits and waits, have a
// fifth of what is translated at a time for themselves.
// What is not done in batches (the inside of a model, what-ifs) waits in a line of its own, of
// which one thread at most does one thing at a time.
constexpr size_t kEnough = 48;  // sentences of one request under way while others wait
constexpr size_t kFew = 8;
constexpr int64_t kShareOfFew = 5;

bool is_few(const Task& task) { return task.sentences.size() <= kFew; }

bool unwanted(const Task& task) {
  return task.failed || task.abandoned() || Task::Clock::now() > task.deadline;
}

// Of one sentence; empty where the client takes whole sentences.
Grown listener(Task& task, size_t sentence) {
  if (!task.grown) return nullptr;
  return [&task, sentence](const std::string& more) {
    const std::lock_guard hold(task.telling);
    task.grown(sentence, more);
  };
}

double seconds_since(Task::Clock::time_point then) {
  return std::chrono::duration<double>(Task::Clock::now() - then).count();
}

}  // namespace

int64_t estimated_tokens(std::string_view sentence) {
  return 2 + static_cast<int64_t>(sentence.size()) / 4;
}

int64_t Task::tokens_of(size_t part) const {
  const int64_t own = sentences.empty() ? 0 : estimated_tokens(sentences[part]);
  return part == 0 ? own + cost : own;
}

bool Batcher::add(std::shared_ptr<Task> task) {
  int64_t tokens = 0;
  for (size_t part = 0; part < task->parts(); ++part) tokens += task->tokens_of(part);
  task->left = task->parts();
  task->translations.resize(task->sentences.size());
  task->arrived = Task::Clock::now();
  {
    const std::lock_guard hold(mutex_);
    if (!fits(tokens)) return false;
    queued_ += tokens;
    if (task->parts() == 0)
      ended_.push_back(std::move(task));
    else
      tasks_.push_back(std::move(task));
  }
  arrived_.notify_one();
  return true;
}

bool Batcher::work(std::chrono::milliseconds patience, const Leave& leave) {
  Batch batch;
  bool any_ended = false;
  {
    std::unique_lock lock(mutex_);
    const auto some = [&, before = wakes_] {
      return wakes_ != before || can_begin() || !ended_.empty();
    };
    arrived_.wait_for(lock, patience, some);
    while (can_begin() && ended_.empty() && queued_ < options_.batch_tokens &&
           Task::Clock::now() < patient_until())
      arrived_.wait_until(lock, patient_until());
    begin(batch);
    any_ended = !ended_.empty();
  }
  complete_ended();
  if (!batch.items.empty()) run(batch, leave);
  return any_ended || batch.numbers > 0;
}

void Batcher::complete_ended() {
  std::vector<std::shared_ptr<Task>> ended;
  {
    const std::lock_guard hold(mutex_);
    ended.swap(ended_);
  }
  for (const auto& task : ended) complete(*task);
}

bool Batcher::can_begin(const Task& task) const {
  if (task.alone)
    return std::ranges::none_of(batches_, [](const Batch* batch) { return batch->line.alone; });
  return all_.tokens < options_.batch_tokens && all_.sentences < options_.batch_sentences;
}

bool Batcher::can_begin() const {
  return !paused_ &&
         std::ranges::any_of(tasks_, [this](const auto& task) { return can_begin(*task); });
}

void Batcher::begin(Batch& batch) {
  drop_unwanted();
  if (!can_begin()) return;
  batch.line = next_line();
  batch.open = !batch.line.alone && batch.line.engine->joins();
  batches_.push_back(&batch);
  take(batch);
  assert(!batch.items.empty());
  std::stable_partition(tasks_.begin(), tasks_.end(),
                        [&](const auto& task) { return !batch.line.has(*task); });
  if (can_begin()) arrived_.notify_one();  // there is work for another thread, too
}

void Batcher::end(const Batch& batch) {
  {
    const std::lock_guard hold(mutex_);
    std::erase(batches_, &batch);
    if (!batch.open && !batch.line.alone) free_since_ = Task::Clock::now();
  }
  arrived_.notify_all();
  ended_batch_.notify_all();
}

Task::Clock::time_point Batcher::patient_until() const {
  constexpr int kShareOfPause = 5;
  Task::Clock::time_point first = tasks_.front()->arrived, last = first;
  for (const auto& task : tasks_) {
    if (task->alone || task->engine->joins()) return {};
    first = std::min(first, task->arrived);
    last = std::max(last, task->arrived);
  }
  return std::min(std::max(first, free_since_) + options_.delay,
                  std::max(last, free_since_) + options_.delay / kShareOfPause);
}

// Requests whose clients have left, or that waited too long, make room for others.
void Batcher::drop_unwanted() {
  dropped_ = Task::Clock::now();
  for (auto& task : tasks_) {
    if (!unwanted(*task)) continue;
    const size_t dropped = task->parts() - task->taken;
    for (; task->taken < task->parts(); ++task->taken) queued_ -= task->tokens_of(task->taken);
    task->missed = true;
    if ((task->left -= dropped) == 0) ended_.push_back(task);
  }
  std::erase_if(tasks_, [](const auto& task) { return task->taken == task->parts(); });
}

bool Batcher::Line::has(const Task& task) const {
  if (alone || task.alone) return alone && task.alone;
  return task.engine.get() == engine && task.wish == wish;
}

Batcher::Line Batcher::next_line() {
  round_ = !round_;
  const auto rank = [&](const auto& task) {
    return std::tuple(!can_begin(*task), last_.has(*task),
                      round_ ? Task::Clock::time_point() : task->arrived);
  };
  const auto& first = *std::ranges::min_element(tasks_, {}, rank);
  last_ = first->alone ? Line{.alone = true} : Line{first->engine.get(), first->wish};
  return last_;
}

// Whether another line waits that no batch takes from.
bool Batcher::others_wait(const Batch& batch) const {
  return std::ranges::any_of(tasks_, [&](const auto& task) {
    return !batch.line.has(*task) && std::ranges::none_of(batches_, [&](const Batch* other) {
      return (other->open || other->line.alone) && other->line.has(*task);
    });
  });
}

// Sentences that a batch may hold for all threads to have as many.
int64_t Batcher::share(const Batch& batch) const {
  int64_t all = all_.sentences;
  for (const auto& task : tasks_) {
    if (all >= options_.batch_sentences) break;
    if (batch.line.has(*task)) all += static_cast<int64_t>(task->parts() - task->taken);
  }
  all = std::min(all, options_.batch_sentences);
  return (all + options_.workers - 1) / options_.workers;
}

// The next part of the task.
Batcher::Taken Batcher::take_part(Batch& batch, Task& task) {
  if (task.taken == task.parts()) return Taken::none;
  const int64_t size = task.tokens_of(task.taken);
  const bool first = batch.load.sentences == 0 && all_.tokens < options_.batch_tokens;
  const bool fits = (first || all_.tokens + size <= options_.batch_tokens) &&
                    all_.sentences < options_.batch_sentences;
  if (!fits && !task.alone) return Taken::no_room;
  const Item item{task.shared_from_this(), task.taken++};
  batch.items.emplace(batch.numbers++, item);
  count(batch, item, 1);
  queued_ -= size;
  return Taken::one;
}

// As many as there is room for. False where one does not fit, which nobody behind it may overtake.
bool Batcher::take_parts(Batch& batch, Task& task, const std::function<bool()>& room) {
  while (room()) {
    const Taken taken = take_part(batch, task);
    if (taken != Taken::one) return taken == Taken::none;
  }
  return true;
}

// What is no translation is no load.
void Batcher::count(Batch& batch, const Item& item, int64_t sign) {
  if (item.task->sentences.empty()) return;
  const int64_t tokens = sign * item.task->tokens_of(item.part);
  const auto add = [&](Load& load) {
    load.sentences += sign;
    load.tokens += tokens;
  };
  item.task->under_way += static_cast<size_t>(sign);
  add(all_);
  add(batch.load);
  if (is_few(*item.task) && !item.task->alone) add(few_);
}

// Parts of the batch's line; where requests share none, of one of them.
void Batcher::take(Batch& batch) {
  const int64_t most = share(batch);
  const auto room = [&] {
    const bool first = batch.load.sentences == 0;
    return batch.load.sentences < most &&
           (first || batch.load.tokens * options_.workers < options_.batch_tokens);
  };
  const auto room_for_few = [&] {
    const bool first = few_.sentences == 0;
    return room() && (first || (few_.tokens < options_.batch_tokens / kShareOfFew &&
                                few_.sentences < options_.batch_sentences / kShareOfFew));
  };
  // Calls act(task) for each of the line while it is true and there is room.
  const auto each = [&](const auto& act) {
    for (const auto& task : tasks_)
      if (batch.line.has(*task) && (!room() || !act(*task))) return false;
    return true;
  };
  const auto take_few = [&](Task& task) {
    return !is_few(task) || take_parts(batch, task, room_for_few);
  };
  const auto take_some = [&](Task& task) {
    return take_parts(batch, task, [&] { return room() && task.under_way < kEnough; });
  };
  const auto take_all = [&](Task& task) { return take_parts(batch, task, room); };
  if (batch.line.alone) {
    const auto only = std::ranges::find_if(tasks_, [](const auto& task) { return task->alone; });
    while (take_part(batch, **only) == Taken::one) continue;
  } else {
    each(take_few) && each(take_some) && each(take_all);
  }
  std::erase_if(tasks_, [](const auto& task) { return task->taken == task->parts(); });
}

// Reading a few sentences takes longer for each than reading many, so that a large batch takes some
// only every few steps.
void Batcher::take_more(Batch& batch) {
  constexpr int64_t kSentencesPerStep = 8;
  constexpr std::chrono::milliseconds kOften{10};
  if (!batch.open || ++batch.steps < std::ssize(batch.items) / kSentencesPerStep) return;
  const std::lock_guard hold(mutex_);
  if (tasks_.empty() || paused_) return;
  if (Task::Clock::now() > dropped_ + kOften) drop_unwanted();
  const bool full =
      all_.tokens >= options_.batch_tokens || all_.sentences >= options_.batch_sentences;
  if (full || others_wait(batch)) return;
  take(batch);
  batch.steps = 0;
}

// Whether there is something to translate.
bool Batcher::prepare(Task& task) {
  if (!task.prepare || task.prepare(task)) return true;
  task.finish = nullptr;
  return false;
}

void Batcher::run(Batch& batch, const Leave& leave) {
  const std::shared_ptr<Task> first = batch.items.begin()->second.task;
  const std::shared_ptr<const Engine> engine = first->engine;  // longer than what uses it
  try {
    if (first->sentences.empty()) {
      complete(*first);
    } else if (prepare(*first)) {
      const auto wanted = [&](int64_t number) { return !unwanted(*batch.items.at(number).task); };
      Translating under_way(engine->package(), first->wish, wanted);
      translate(batch, under_way, leave);
    }
  } catch (const std::exception& error) {
    give_up(batch, error.what());
  }
  {
    const std::lock_guard hold(mutex_);
    for (const auto& [number, item] : batch.items) count(batch, item, -1);
  }
  end(batch);
}

// The batch and all that joins it.
void Batcher::translate(Batch& batch, Translating& under_way, const Leave& leave) {
  for (int64_t known = 0; !batch.items.empty();) {
    BatchStep step{.began = batch.numbers - known, .sentences = std::ssize(batch.items)};
    std::vector<Translating::Sentence> joining;
    for (auto at = batch.items.lower_bound(known); at != batch.items.end(); ++at) {
      Task& task = *at->second.task;
      const size_t part = at->second.part;
      joining.push_back({at->first, task.sentences[part], listener(task, part)});
      step.waited = std::max(step.waited, seconds_since(task.arrived));
    }
    known = batch.numbers;
    const auto begin = Task::Clock::now();
    if (!joining.empty()) under_way.add(joining);
    auto done = under_way.step();
    step.tokens = batch.load.tokens;
    step.seconds = seconds_since(begin);
    if (observe) observe(step);
    for (auto& [number, translation] : done) deliver(batch, number, std::move(translation));
    if (!leave || !leave()) take_more(batch);
    complete_ended();
  }
}

// What goes wrong in it is no fault of the others in the batch.
void Batcher::tell(Task& task, size_t part, Translation& translation) {
  try {
    const std::lock_guard hold(task.telling);
    task.each(part, translation);
  } catch (const std::exception& error) {
    log_error("what a sentence became could not be told: {}", error.what());
    task.failed = true;
  }
}

void Batcher::deliver(Batch& batch, int64_t number, Translation translation) {
  const Item item = batch.items.extract(number).mapped();
  {
    const std::lock_guard hold(mutex_);
    count(batch, item, -1);
    if (!tasks_.empty()) arrived_.notify_one();  // there may be room for what waits
  }
  Task& task = *item.task;
  const bool empty = translation.n_best.empty() && unwanted(task);
  if (empty) task.missed = true;
  if (task.each && !empty) tell(task, item.part, translation);
  task.translations[item.part] = std::move(translation);
  if (--task.left == 0) complete(task);
}

void Batcher::give_up(Batch& batch, const std::string& why) {
  log_error("a batch of {} sentences failed: {}", batch.items.size(), why);
  for (const auto& [number, item] : batch.items) {
    item.task->failed = true;
    if (--item.task->left == 0) complete(*item.task);
  }
}

void Batcher::complete(Task& task) {
  const Outcome outcome = task.failed        ? Outcome::failed
                          : task.abandoned() ? Outcome::abandoned
                          : task.missed      ? Outcome::late
                                             : Outcome::done;
  try {
    task.finish(outcome, std::move(task.translations));
  } catch (const std::exception& error) {
    log_error("an answer could not be written: {}", error.what());
  }
  task.finish = nullptr;  // and with all of these the exchange
  task.each = nullptr;
  task.grown = nullptr;
  task.prepare = nullptr;
  task.abandoned = nullptr;
}

bool Batcher::has_room(int64_t tokens) const {
  const std::lock_guard hold(mutex_);
  return fits(tokens);
}

size_t Batcher::waiting() const {
  const std::lock_guard hold(mutex_);
  return tasks_.size() + ended_.size();
}

int64_t Batcher::waiting_tokens() const {
  const std::lock_guard hold(mutex_);
  return queued_;
}

bool Batcher::full() const {
  constexpr int64_t kOrdinary = 64;
  return !has_room(std::max(kOrdinary, options_.queue_tokens / 10));
}

void Batcher::wake() {
  {
    const std::lock_guard hold(mutex_);
    ++wakes_;
  }
  arrived_.notify_all();
}

void Batcher::pause(const std::function<void()>& act) {
  {
    std::unique_lock lock(mutex_);
    paused_ = true;
    ++wakes_;
    ended_batch_.wait(lock, [this] { return batches_.empty(); });
  }
  act();
  {
    const std::lock_guard hold(mutex_);
    paused_ = false;
  }
  arrived_.notify_all();
}

}  // namespace fovea

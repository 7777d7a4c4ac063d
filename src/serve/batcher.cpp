#include "serve/batcher.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <thread>

#include "base/log.h"

namespace fovea {
namespace {

constexpr std::chrono::milliseconds kAfterFailure{10};  // before the next try to begin a batch

bool unwanted(const Task& task) {
  return task.failed || task.abandoned() || Task::Clock::now() > task.deadline;
}

// Of one sentence; empty if the client wants whole sentences.
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

bool Batcher::add(std::shared_ptr<Task> task) {
  int64_t cost = 0;
  for (size_t part = 0; part < task->parts(); ++part) cost += task->cost_of(part);
  task->left = task->parts();
  task->translations.resize(task->sentences.size());
  task->arrived = Task::Clock::now();
  {
    const std::lock_guard hold(mutex_);
    if (!queue_.fits(task->client, cost)) return false;
    if (task->parts() == 0)
      ended_.push_back(std::move(task));
    else
      queue_.add(std::move(task));
  }
  arrived_.notify_one();
  return true;
}

bool Batcher::work(std::chrono::milliseconds patience, const Leave& leave) {
  Batch batch;
  bool any_ended = false;
  try {
    std::unique_lock lock(mutex_);
    const auto some = [&, before = wakes_] {
      return wakes_ != before || can_begin() || !ended_.empty();
    };
    arrived_.wait_for(lock, patience, some);
    while (can_begin() && ended_.empty() && queue_.cost() < options_.batch_tokens &&
           Task::Clock::now() < patient_until())
      arrived_.wait_until(lock, patient_until());
    drop_unwanted();
    if (const ClientQueue* client = next_client()) begin(batch, *client);
    any_ended = !ended_.empty();
  } catch (const std::exception& error) {
    abandon(batch, error.what());
    std::this_thread::sleep_for(kAfterFailure);
    return true;
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

// Takes the batch and what is left of it out of the books.
void Batcher::end(Batch& batch) {
  {
    const std::lock_guard hold(mutex_);
    for (const auto& [number, item] : batch.items) count(batch, item, -1);
    std::erase(batches_, &batch);
    if (!batch.open && !batch.line.alone) free_since_ = Task::Clock::now();
  }
  arrived_.notify_all();
  ended_batch_.notify_all();
}

// Of a batch that could not be begun, for example without memory.
void Batcher::abandon(Batch& batch, const std::string& why) {
  give_up(batch, why);
  {
    const std::lock_guard hold(mutex_);
    for (const auto& [number, item] : batch.items) queue_.erase_taken(*item.task->queue);
  }
  end(batch);
}

// Requests whose clients have left, or that waited too long, make room for others.
void Batcher::drop_unwanted() {
  dropped_ = Task::Clock::now();
  std::ranges::move(queue_.drop(unwanted), std::back_inserter(ended_));
}

// Runs the batches of clients that go before this one, each until it ends.
void Batcher::let_others_pass(Batch& batch, const Leave& leave) {
  for (;;) {
    Batch next{.below = &batch};
    try {
      const std::lock_guard hold(mutex_);
      const ClientQueue* client = client_before(batch);
      if (!client) return;
      begin(next, *client);
      batch.paused = true;
    } catch (const std::exception& error) {
      return abandon(next, error.what());
    }
    run(next, leave);
    const std::lock_guard hold(mutex_);
    batch.paused = false;
  }
}

void Batcher::charge(const Batch& batch) {
  const std::lock_guard hold(mutex_);
  for (const auto& [number, item] : batch.items) queue_.charge_step(*item.task);
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
    charge(batch);
    for (auto& [number, translation] : done) deliver(batch, number, std::move(translation));
    if (!leave || !leave()) {
      take_more(batch);
      let_others_pass(batch, leave);
    }
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
    if (!queue_.empty()) arrived_.notify_one();  // there may be room for what waits
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

bool Batcher::has_room(const std::string& client, int64_t cost) const {
  const std::lock_guard hold(mutex_);
  return queue_.fits(client, cost);
}

size_t Batcher::waiting() const {
  const std::lock_guard hold(mutex_);
  return queue_.tasks() + ended_.size();
}

int64_t Batcher::waiting_cost() const {
  const std::lock_guard hold(mutex_);
  return queue_.cost();
}

bool Batcher::full() const {
  const std::lock_guard hold(mutex_);
  return queue_.full();
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

#include "serve/batcher.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <thread>

#include "base/log.h"

namespace fovea {
namespace {

constexpr std::chrono::milliseconds kAfterFailure{10};  // before the next attempt to begin a batch

bool unwanted(const TranslationTask& task) {
  return task.failed || task.abandoned() || TranslationTask::Clock::now() > task.deadline;
}

// Returns the callback for the words of one sentence, or null if the client receives whole
// sentences only.
PrefixCallback prefix_callback(TranslationTask& task, size_t sentence) {
  if (!task.on_prefix) return nullptr;
  return [&task, sentence](const std::string& more) {
    const std::lock_guard hold(task.callback_mutex);
    task.on_prefix(sentence, more);
  };
}

double seconds_since(TranslationTask::Clock::time_point then) {
  return std::chrono::duration<double>(TranslationTask::Clock::now() - then).count();
}

}  // namespace

bool Batcher::add(std::shared_ptr<TranslationTask> task) {
  int64_t cost = 0;
  for (size_t part = 0; part < task->parts(); ++part) cost += task->cost_of(part);
  task->left = task->parts();
  task->translations.resize(task->sentences.size());
  task->arrived = TranslationTask::Clock::now();
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
           TranslationTask::Clock::now() < batching_deadline())
      arrived_.wait_until(lock, batching_deadline());
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
  std::vector<std::shared_ptr<TranslationTask>> ended;
  {
    const std::lock_guard hold(mutex_);
    ended.swap(ended_);
  }
  for (const auto& task : ended) complete(*task);
}

// Removes the batch and its remaining items from the load.
void Batcher::end(Batch& batch) {
  {
    const std::lock_guard hold(mutex_);
    for (const auto& [number, item] : batch.items) count(batch, item, -1);
    std::erase(batches_, &batch);
    if (!batch.open && !batch.key.alone) free_since_ = TranslationTask::Clock::now();
  }
  arrived_.notify_all();
  ended_batch_.notify_all();
}

// Ends a batch that could not begin, for example for lack of memory.
void Batcher::abandon(Batch& batch, const std::string& why) {
  fail_tasks(batch, why);
  {
    const std::lock_guard hold(mutex_);
    for (const auto& [number, item] : batch.items) queue_.erase_taken(*item.task->queue);
  }
  end(batch);
}

// Drops waiting tasks whose clients have left or whose deadline has passed.
void Batcher::drop_unwanted() {
  last_drop_ = TranslationTask::Clock::now();
  std::ranges::move(queue_.drop(unwanted), std::back_inserter(ended_));
}

// Runs the batches of clients that have priority over this batch, each until it ends.
void Batcher::run_interrupting_batches(Batch& batch, const Leave& leave) {
  for (;;) {
    Batch next{.interrupted = &batch};
    try {
      const std::lock_guard hold(mutex_);
      const ClientQueue* client = interrupting_client(batch);
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

// Prepares a task. Returns false if the client has been answered and there is nothing to translate.
bool Batcher::prepare(TranslationTask& task) {
  if (!task.prepare || task.prepare(task)) return true;
  task.finish = nullptr;
  return false;
}

void Batcher::run(Batch& batch, const Leave& leave) {
  const std::shared_ptr<TranslationTask> first = batch.items.begin()->second.task;
  const std::shared_ptr<const ServedModel> model = first->model;  // it must outlive the session
  try {
    if (first->sentences.empty()) {
      complete(*first);
    } else if (prepare(*first)) {
      const auto wanted = [&](int64_t number) { return !unwanted(*batch.items.at(number).task); };
      TranslationSession under_way(model->package(), first->decoding, wanted);
      translate(batch, under_way, leave);
    }
  } catch (const std::exception& error) {
    fail_tasks(batch, error.what());
  }
  end(batch);
}

// Translates the batch and all sentences that join it.
void Batcher::translate(Batch& batch, TranslationSession& under_way, const Leave& leave) {
  for (int64_t known = 0; !batch.items.empty();) {
    BatchStep step{.began = batch.numbers - known, .sentences = std::ssize(batch.items)};
    std::vector<TranslationSession::Sentence> joining;
    for (auto at = batch.items.lower_bound(known); at != batch.items.end(); ++at) {
      TranslationTask& task = *at->second.task;
      const size_t part = at->second.part;
      joining.push_back({at->first, task.sentences[part], prefix_callback(task, part)});
      step.waited = std::max(step.waited, seconds_since(task.arrived));
    }
    known = batch.numbers;
    const auto begin = TranslationTask::Clock::now();
    if (!joining.empty()) under_way.add(joining);
    auto done = under_way.step();
    step.tokens = batch.load.tokens;
    step.seconds = seconds_since(begin);
    if (observe) observe(step);
    charge(batch);
    for (auto& [number, translation] : done) deliver(batch, number, std::move(translation));
    if (!leave || !leave()) {
      take_more(batch);
      run_interrupting_batches(batch, leave);
    }
    complete_ended();
  }
}

// Calls the callback of a task for a translated sentence. If it throws, only this task fails, not
// the others in the batch.
void Batcher::notify(TranslationTask& task, size_t part, Translation& translation) {
  try {
    const std::lock_guard hold(task.callback_mutex);
    task.on_sentence(part, translation);
  } catch (const std::exception& error) {
    log_error("could not deliver the result of a sentence: {}", error.what());
    task.failed = true;
  }
}

void Batcher::deliver(Batch& batch, int64_t number, Translation translation) {
  const Item item = batch.items.extract(number).mapped();
  {
    const std::lock_guard hold(mutex_);
    count(batch, item, -1);
    if (!queue_.empty()) arrived_.notify_one();  // a waiting task may fit into a batch now
  }
  TranslationTask& task = *item.task;
  const bool empty = translation.n_best.empty() && unwanted(task);
  if (empty) task.missed = true;
  if (task.on_sentence && !empty) notify(task, item.part, translation);
  task.translations[item.part] = std::move(translation);
  if (--task.left == 0) complete(task);
}

void Batcher::fail_tasks(Batch& batch, const std::string& why) {
  log_error("a batch of {} sentences failed: {}", batch.items.size(), why);
  for (const auto& [number, item] : batch.items) {
    item.task->failed = true;
    if (--item.task->left == 0) complete(*item.task);
  }
}

void Batcher::complete(TranslationTask& task) {
  const TaskOutcome outcome = task.failed        ? TaskOutcome::failed
                              : task.abandoned() ? TaskOutcome::abandoned
                              : task.missed      ? TaskOutcome::late
                                                 : TaskOutcome::done;
  try {
    task.finish(outcome, std::move(task.translations));
  } catch (const std::exception& error) {
    log_error("could not write an answer: {}", error.what());
  }
  task.finish = nullptr;  // releases the exchange, which the callbacks own
  task.on_sentence = nullptr;
  task.on_prefix = nullptr;
  task.prepare = nullptr;
  task.abandoned = nullptr;
}

bool Batcher::would_accept(const std::string& client, int64_t cost) const {
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

// Whether the queues are so full that a small request of a new client might be rejected.
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

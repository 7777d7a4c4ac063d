#include "serve/batcher.h"

#include <algorithm>
#include <exception>

#include "base/log.h"

namespace fovea {
namespace {

// Note [Turns]
// Only sentences with the same model and the same wish can share a batch: requests wait in as many
// lines as there are of these, and lines take turns, a batch each. Every other turn goes round: the
// line that has its turn goes behind the others. The turns between belong to the line of the
// request that came first of all. No line has two turns together while others wait. So a line waits
// for no more than two batches for each line before it, however long they are; the request that
// came first has half of the batches, however many others come; and a load of one kind is served as
// if there were no lines. In a line requests are served in the order in which they came. Two things
// differ from that, and cost those who are overtaken little: a request of many sentences gives way
// to the next after each turn, and requests of a few sentences, behind which somebody sits and
// waits, have a fifth of each batch for themselves.
// What is not done in batches (the inside of a model, what-ifs) waits in a line of its own, so that
// one of these is done between two batches.
constexpr size_t kTurn = 32;  // sentences of one request before the next request has its turn
constexpr size_t kFew = 8;
constexpr size_t kShareOfFew = 5;

bool unwanted(const Task& task) {
  return task.failed || task.abandoned() || Task::Clock::now() > task.deadline;
}

// Of one sentence; empty where the client takes whole sentences.
Grown listener(const Task& task, size_t sentence) {
  if (!task.grown) return nullptr;
  return [&task, sentence](const std::string& more) { task.grown(sentence, more); };
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

bool Batcher::work(std::chrono::milliseconds patience) {
  std::vector<Item> batch;
  std::vector<std::shared_ptr<Task>> ended;
  {
    std::unique_lock lock(mutex_);
    const auto some = [&] { return woken_ || !tasks_.empty() || !ended_.empty(); };
    arrived_.wait_for(lock, patience, some);
    woken_ = false;
    if (tasks_.empty() && ended_.empty()) return false;
    while (!tasks_.empty() && ended_.empty() && queued_ < options_.batch_tokens &&
           Task::Clock::now() < patient_until())
      arrived_.wait_until(lock, patient_until());
    drop_unwanted();
    batch = take();
    ended.swap(ended_);
  }
  for (const auto& task : ended) complete(*task);
  if (batch.empty()) return true;
  Task& first = *batch.front().task;
  if (first.sentences.empty())
    complete(first);
  else if (prepare(batch))
    run(batch);
  return true;
}

Task::Clock::time_point Batcher::patient_until() const {
  constexpr int kShareOfPause = 5;
  Task::Clock::time_point first = tasks_.front()->arrived, last = first;
  for (const auto& task : tasks_) {
    if (task->alone) return {};
    first = std::min(first, task->arrived);
    last = std::max(last, task->arrived);
  }
  return std::min(std::max(first, free_since_) + options_.delay,
                  std::max(last, free_since_) + options_.delay / kShareOfPause);
}

// Requests whose clients have left, or that waited too long, make room for others.
void Batcher::drop_unwanted() {
  for (auto& task : tasks_) {
    if (!unwanted(*task)) continue;
    for (size_t part = task->taken; part < task->parts(); ++part) queued_ -= task->tokens_of(part);
    task->left -= task->parts() - task->taken;
    task->taken = task->parts();
    task->missed = true;
    ended_.push_back(task);
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
    return std::pair(last_.has(*task), round_ ? Task::Clock::time_point() : task->arrived);
  };
  const auto& first = *std::ranges::min_element(tasks_, {}, rank);
  last_ = first->alone ? Line{.alone = true} : Line{first->engine.get(), first->wish};
  return last_;
}

// Parts of the line whose turn it is.
std::vector<Batcher::Item> Batcher::take() {
  std::vector<Item> batch;
  if (tasks_.empty()) return batch;
  const Line line = next_line();
  int64_t tokens = 0;
  const auto turn = [&](const std::shared_ptr<Task>& task, size_t share) {
    const bool shares = batch.empty() || !line.alone || batch.front().task == task;
    if (!line.has(*task) || !shares) return false;
    const size_t begin = task->taken, end = std::min(task->parts(), begin + kTurn);
    for (; task->taken < end; ++task->taken) {
      const int64_t size = task->tokens_of(task->taken);
      const bool full = tokens + size > options_.batch_tokens / static_cast<int64_t>(share) ||
                        batch.size() >= options_.batch_sentences / share;
      if (full && !batch.empty()) break;
      batch.push_back({task, task->taken});
      tokens += size;
      queued_ -= size;
    }
    return task->taken > begin;
  };
  for (const auto& task : tasks_)
    if (task->sentences.size() <= kFew) turn(task, kShareOfFew);
  for (bool more = true; more;) {
    more = false;
    for (const auto& task : tasks_) more = turn(task, 1) || more;
  }
  std::erase_if(tasks_, [](const auto& task) { return task->taken == task->parts(); });
  std::stable_partition(tasks_.begin(), tasks_.end(),
                        [&](const auto& task) { return !line.has(*task); });
  return batch;
}

// Whether there is something to translate.
bool Batcher::prepare(const std::vector<Item>& batch) {
  Task& task = *batch.front().task;
  if (!task.prepare) return true;
  try {
    if (task.prepare(task)) return true;
    task.finish = nullptr;
  } catch (const std::exception& error) {
    give_up(batch, error.what());
    complete(task);
  }
  return false;
}

void Batcher::run(const std::vector<Item>& batch) {
  const Task& first = *batch.front().task;
  BatchRun about{.sentences = batch.size()};
  std::vector<std::string> lines;
  std::vector<Grown> grown;
  const bool heard = std::ranges::any_of(batch, [](const Item& i) { return !!i.task->grown; });
  for (const Item& item : batch) {
    if (heard) grown.push_back(listener(*item.task, item.part));
    lines.push_back(item.task->sentences[item.part]);
    about.tokens += estimated_tokens(lines.back());
    about.waited = std::max(about.waited, seconds_since(item.task->arrived));
  }
  const auto begin = Task::Clock::now();
  try {
    const auto wanted = [&](size_t i) { return !unwanted(*batch[i].task); };
    auto found = first.engine->translate(lines, first.wish, wanted, grown);
    for (size_t i = 0; i < batch.size(); ++i) {
      Task& task = *batch[i].task;
      const bool empty = found[i].n_best.empty() && unwanted(task);
      task.missed = task.missed || empty;
      if (task.each && !empty) task.each(batch[i].part, found[i]);
      task.translations[batch[i].part] = std::move(found[i]);
    }
  } catch (const std::exception& error) {
    give_up(batch, error.what());
  }
  about.seconds = seconds_since(begin);
  if (observe) observe(about);
  for (const Item& item : batch)
    if (--item.task->left == 0) complete(*item.task);
  free_since_ = Task::Clock::now();
}

void Batcher::give_up(const std::vector<Item>& batch, const std::string& why) {
  log_error("a batch of {} sentences failed: {}", batch.size(), why);
  for (const Item& item : batch) item.task->failed = true;
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
  task.finish = nullptr;  // and with it the exchange
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

bool Batcher::full() const { return waiting_tokens() >= options_.queue_tokens; }

void Batcher::wake() {
  {
    const std::lock_guard hold(mutex_);
    woken_ = true;
  }
  arrived_.notify_one();
}

}  // namespace fovea

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
constexpr size_t kTurn = 32;  // sentences of one request before the next request has its turn
constexpr size_t kFew = 8;
constexpr size_t kShareOfFew = 5;

bool unwanted(const Task& task) {
  return task.failed || task.abandoned() || Task::Clock::now() > task.deadline;
}

double seconds_since(Task::Clock::time_point then) {
  return std::chrono::duration<double>(Task::Clock::now() - then).count();
}

}  // namespace

int64_t estimated_tokens(std::string_view sentence) {
  return 2 + static_cast<int64_t>(sentence.size()) / 4;
}

bool Batcher::add(std::shared_ptr<Task> task) {
  for (const std::string& sentence : task->sentences) task->tokens += estimated_tokens(sentence);
  task->left = task->sentences.size();
  task->translations.resize(task->sentences.size());
  task->arrived = Task::Clock::now();
  {
    const std::lock_guard hold(mutex_);
    if (!fits(task->tokens)) return false;
    queued_ += task->tokens;
    if (task->sentences.empty())
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
    if (!tasks_.empty() && ended_.empty())
      arrived_.wait_until(lock, longest_waiting() + options_.delay,
                          [&] { return queued_ >= options_.batch_tokens; });
    drop_unwanted();
    batch = take();
    ended.swap(ended_);
  }
  for (const auto& task : ended) complete(*task);
  if (!batch.empty()) run(batch);
  return true;
}

Task::Clock::time_point Batcher::longest_waiting() const {
  const auto arrived = [](const auto& task) { return task->arrived; };
  return (*std::ranges::min_element(tasks_, {}, arrived))->arrived;
}

// Requests whose clients have left, or that waited too long, make room for others.
void Batcher::drop_unwanted() {
  for (auto& task : tasks_) {
    if (!unwanted(*task)) continue;
    for (size_t i = task->taken; i < task->sentences.size(); ++i)
      queued_ -= estimated_tokens(task->sentences[i]);
    task->left -= task->sentences.size() - task->taken;
    task->taken = task->sentences.size();
    task->missed = true;
    ended_.push_back(task);
  }
  std::erase_if(tasks_, [](const auto& task) { return task->taken == task->sentences.size(); });
}

bool Batcher::Line::has(const Task& task) const {
  return task.engine.get() == engine && task.wish == wish;
}

Batcher::Line Batcher::next_line() {
  round_ = !round_;
  const auto rank = [&](const auto& task) {
    return std::pair(last_.has(*task), round_ ? Task::Clock::time_point() : task->arrived);
  };
  const auto& first = *std::ranges::min_element(tasks_, {}, rank);
  return last_ = {first->engine.get(), first->wish};
}

// Sentences of the line whose turn it is.
std::vector<Batcher::Item> Batcher::take() {
  std::vector<Item> batch;
  if (tasks_.empty()) return batch;
  const Line line = next_line();
  int64_t tokens = 0;
  const auto turn = [&](const std::shared_ptr<Task>& task, size_t share) {
    if (!line.has(*task)) return false;
    const size_t begin = task->taken, end = std::min(task->sentences.size(), begin + kTurn);
    for (; task->taken < end; ++task->taken) {
      const int64_t size = estimated_tokens(task->sentences[task->taken]);
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
  std::erase_if(tasks_, [](const auto& task) { return task->taken == task->sentences.size(); });
  std::ranges::stable_partition(tasks_, [&](const auto& task) { return !line.has(*task); });
  return batch;
}

void Batcher::run(const std::vector<Item>& batch) {
  const Task& first = *batch.front().task;
  BatchRun about{.sentences = batch.size()};
  std::vector<std::string> lines;
  for (const Item& item : batch) {
    lines.push_back(item.task->sentences[item.sentence]);
    about.tokens += estimated_tokens(lines.back());
    about.waited = std::max(about.waited, seconds_since(item.task->arrived));
  }
  const auto begin = Task::Clock::now();
  try {
    auto found = first.engine->translate(lines, first.wish,
                                         [&](size_t i) { return !unwanted(*batch[i].task); });
    for (size_t i = 0; i < batch.size(); ++i) {
      Task& task = *batch[i].task;
      const bool empty = found[i].n_best.empty() && unwanted(task);
      task.missed = task.missed || empty;
      if (task.each && !empty) task.each(batch[i].sentence, found[i]);
      task.translations[batch[i].sentence] = std::move(found[i]);
    }
  } catch (const std::exception& error) {
    give_up(batch, error.what());
  }
  about.seconds = seconds_since(begin);
  if (observe) observe(about);
  for (const Item& item : batch)
    if (--item.task->left == 0) complete(*item.task);
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

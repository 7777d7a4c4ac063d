#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/engine.h"

namespace fovea {

enum class Outcome { done, abandoned, late, failed };

// The sentences of one request on their way through a model, or something else that takes the time
// of the thread that translates. Callbacks run on that thread, the one that calls Batcher::work.
struct Task {
  using Clock = std::chrono::steady_clock;

  std::shared_ptr<const Engine> engine;
  Wish wish;
  std::vector<std::string> sentences;
  std::function<bool()> abandoned;  // the client left; may be asked at any time
  Clock::time_point deadline;
  // By itself: it shares its batch with no other request. It may have no sentences; then its turn
  // is its finish, which counts for so many tokens. All such tasks wait in one line.
  bool alone = false;
  int64_t cost = 0;  // tokens beside those of its sentences
  // Where given, called before its sentences are translated, of a task alone. False: its client has
  // been answered, and nothing more is done.
  std::function<bool(Task& task)> prepare = nullptr;
  // Where given, each sentence as soon as it is translated, in no particular order.
  std::function<void(size_t sentence, const Translation& translation)> each = nullptr;
  // Where given, words of a sentence that are certain while the rest is looked for: see Grown.
  // By any thread, one at a time.
  std::function<void(size_t sentence, const std::string& more)> grown = nullptr;
  // Once, with the translations of all sentences where the outcome is done.
  std::function<void(Outcome outcome, std::vector<Translation> translations)> finish;

  // The batcher's own.
  std::vector<Translation> translations = {};
  size_t taken = 0, left = 0;
  bool failed = false, missed = false;
  Clock::time_point arrived = {};

  // What is taken one by one: sentences, or the one thing to do of a task without any.
  size_t parts() const { return alone && sentences.empty() ? 1 : sentences.size(); }
  int64_t tokens_of(size_t part) const;
};

struct BatcherOptions {
  int64_t batch_tokens = 1024;  // of a batch, and at most so many sentences:
  size_t batch_sentences = 64;
  int64_t queue_tokens = 16 << 10;  // that may wait; requests beyond are refused
  // That the first sentence of a batch waits for others, at most: after a fifth of it in which none
  // came, none is expected. Those whose turn comes after another batch wait as well: clients that
  // were answered by it ask again.
  std::chrono::microseconds delay{5000};
};

// What a batch was, for figures.
struct BatchRun {
  size_t sentences = 0;
  int64_t tokens = 0;
  double waited = 0, seconds = 0;  // the longest wait of a sentence; the time of translating
};

// Joins the sentences of many requests into batches. One thread calls work() for all models, since
// they share the processor; any thread may add. Requests of one kind are served as they came, kinds
// by turns, and one of many sentences holds up no other: Note [Turns].
class Batcher {
 public:
  explicit Batcher(const BatcherOptions& options) : options_(options) {}

  // False where too much is waiting. A task without parts is finished on the next work().
  bool add(std::shared_ptr<Task> task);

  // Waits until something is there, for `patience` at most; then translates one batch. False where
  // nothing came.
  bool work(std::chrono::milliseconds patience);

  bool has_room(int64_t tokens) const;  // whether add() would take so many now
  size_t waiting() const;               // tasks
  int64_t waiting_tokens() const;
  bool full() const;
  void wake();  // work() returns as if its patience had ended
  std::function<void(const BatchRun&)> observe = nullptr;

 private:
  struct Item {
    std::shared_ptr<Task> task;
    size_t part;
  };
  // Requests that can share batches, or those that share none. The engine is a name: nothing is
  // asked of it.
  struct Line {
    const Engine* engine = nullptr;
    Wish wish = {};
    bool alone = false;
    bool has(const Task& task) const;
  };
  Line next_line();  // REQUIRES: a task is there
  std::vector<Item> take();
  bool fits(int64_t tokens) const {
    return queued_ == 0 || queued_ + tokens <= options_.queue_tokens;
  }
  // For more sentences to share the batch: they come together, or not at all.
  // REQUIRES: a task is there
  Task::Clock::time_point patient_until() const;
  void drop_unwanted();
  bool prepare(const std::vector<Item>& batch);
  void run(const std::vector<Item>& batch);
  void complete(Task& task);
  void give_up(const std::vector<Item>& batch, const std::string& why);

  BatcherOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::shared_ptr<Task>> tasks_;   // with parts that are not taken yet
  std::vector<std::shared_ptr<Task>> ended_;  // without any left to do
  int64_t queued_ = 0;                        // tokens of the parts in tasks_
  Line last_;                                 // that had its turn
  Task::Clock::time_point free_since_ = {};   // when the last batch ended; of the thread that works
  bool woken_ = false, round_ = true;         // round_: the last turn was one that goes round
};

// What a sentence counts for until it is cut into pieces.
int64_t estimated_tokens(std::string_view sentence);

}  // namespace fovea

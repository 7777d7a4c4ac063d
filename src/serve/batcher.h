#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/engine.h"

namespace fovea {

enum class Outcome { done, abandoned, late, failed };

// The sentences of one request on their way through a model, or something else that takes the time
// of a thread that translates. Callbacks run on such a thread, of those that call Batcher::work.
struct Task : std::enable_shared_from_this<Task> {
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
  // Where given, each sentence as soon as it is translated, in no particular order; this and grown
  // one call at a time, by any thread. It may take away what finish does not need.
  std::function<void(size_t sentence, Translation& translation)> each = nullptr;
  // Where given, words of a sentence that are certain while the rest is looked for: see Grown.
  std::function<void(size_t sentence, const std::string& more)> grown = nullptr;
  // Once, with the translations of all sentences where the outcome is done.
  std::function<void(Outcome outcome, std::vector<Translation> translations)> finish;

  // The batcher's own.
  std::vector<Translation> translations = {};
  size_t taken = 0, under_way = 0;  // parts; those of a batch now
  std::atomic<size_t> left = 0;
  std::atomic<bool> failed = false, missed = false;
  Clock::time_point arrived = {};
  std::mutex telling = {};

  // What is taken one by one: sentences, or the one thing to do of a task without any.
  size_t parts() const { return alone && sentences.empty() ? 1 : sentences.size(); }
  int64_t tokens_of(size_t part) const;
};

struct BatcherOptions {
  int64_t batch_tokens = 1024;  // translated at the same time, and at most so many sentences:
  int64_t batch_sentences = 64;
  int64_t queue_tokens = 16 << 10;  // that may wait; requests beyond are refused
  int64_t workers = 1;              // threads that call work()
  // That the first sentence for a model which none can join later waits for others, at most: after
  // a fifth of it in which none came, none is expected. Those whose turn comes after another batch
  // wait as well: clients that were answered by it ask again.
  std::chrono::microseconds delay{5000};
};

// One step of a batch, for figures.
struct BatchStep {
  int64_t began = 0;                  // sentences that joined it before this step
  double waited = 0;                  // the longest wait of these
  int64_t sentences = 0, tokens = 0;  // of all that are under way in this batch
  double seconds = 0;
};

// Joins the sentences of many requests into batches. Several threads may call work() for all
// models, each for a batch of its own; any thread may add. Sentences join a batch that is under way
// where their model lets them. Requests of one kind are served as they came, kinds by turns, and
// one of many sentences holds up no other: Note [Turns].
class Batcher {
 public:
  explicit Batcher(const BatcherOptions& options) : options_(options) {}

  // False where too much is waiting. A task without parts is finished on the next work().
  bool add(std::shared_ptr<Task> task);

  // Waits until something is there, for `patience` at most; then translates one batch, and whatever
  // joins it until `leave`, where given, says that the thread has something else to do. False where
  // nothing came.
  using Leave = std::function<bool()>;
  bool work(std::chrono::milliseconds patience, const Leave& leave = nullptr);

  bool has_room(int64_t tokens) const;  // whether add() would take so many now
  size_t waiting() const;               // tasks
  int64_t waiting_tokens() const;
  // Whether requests are refused, but for the smallest: less than a tenth of the queue is free, or
  // less than an ordinary request takes.
  bool full() const;
  void wake();  // who waits in work() returns as if its patience had ended
  // Calls `act`, which must not throw, while no batch is under way, and none begins.
  void pause(const std::function<void()>& act);
  std::function<void(const BatchStep&)> observe = nullptr;  // by any thread that works

 private:
  struct Item {
    std::shared_ptr<Task> task;
    size_t part = 0;
  };
  // Requests that can share batches, or those that share none. The engine is a name: it may be gone
  // where no task has it any more.
  struct Line {
    const Engine* engine = nullptr;
    Wish wish = {};
    bool alone = false;
    bool has(const Task& task) const;
  };
  struct Load {
    int64_t sentences = 0, tokens = 0;
  };
  // What a thread works on.
  struct Batch {
    Line line = {};
    bool open = false;  // its line's sentences can join it
    Load load = {};
    std::map<int64_t, Item> items = {};  // under way, by number
    int64_t numbers = 0;                 // given so far
    int64_t steps = 0;                   // since some joined
  };

  bool can_begin() const;
  bool can_begin(const Task& task) const;
  void begin(Batch& batch);
  void end(const Batch& batch);
  Line next_line();  // REQUIRES: can_begin()
  bool others_wait(const Batch& batch) const;
  void take(Batch& batch);
  void take_more(Batch& batch);
  int64_t share(const Batch& batch) const;
  enum class Taken { one, none, no_room };
  Taken take_part(Batch& batch, Task& task);
  bool take_parts(Batch& batch, Task& task, const std::function<bool()>& room);
  void count(Batch& batch, const Item& item, int64_t sign);
  bool fits(int64_t tokens) const {
    return queued_ == 0 || queued_ + tokens <= options_.queue_tokens;
  }
  // For more sentences to share the batch: they come together, or not at all.
  // REQUIRES: a task is there
  Task::Clock::time_point patient_until() const;
  void drop_unwanted();
  bool prepare(Task& task);
  void run(Batch& batch, const Leave& leave);
  void translate(Batch& batch, Translating& under_way, const Leave& leave);
  void deliver(Batch& batch, int64_t number, Translation translation);
  static void tell(Task& task, size_t part, Translation& translation);
  void give_up(Batch& batch, const std::string& why);
  void complete(Task& task);
  void complete_ended();

  BatcherOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_, ended_batch_;
  std::deque<std::shared_ptr<Task>> tasks_;   // with parts that are not taken yet
  std::vector<std::shared_ptr<Task>> ended_;  // without any left to do
  int64_t queued_ = 0;                        // tokens of the parts in tasks_
  std::vector<const Batch*> batches_;         // under way
  Load all_, few_;                            // of all of these; of their requests of few sentences
  Line last_;                                 // that had its turn
  Task::Clock::time_point free_since_ = {};   // when the last batch ended that nobody could join
  Task::Clock::time_point dropped_ = {};      // when unwanted tasks were looked for last
  uint64_t wakes_ = 0;
  bool paused_ = false, round_ = true;  // round_: the last turn was one that goes round
};

// What a sentence counts for until it is cut into pieces.
int64_t estimated_tokens(std::string_view sentence);

}  // namespace fovea

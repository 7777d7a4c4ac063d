#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/fair_queue.h"
#include "serve/task.h"

namespace fovea {

struct BatcherOptions {
  int64_t batch_tokens = 1024;      // cost of what is translated for a group of clients at a time
  int64_t batch_sentences = 64;     // and the places of it: 1 for a sentence with the default beam
  int64_t queue_tokens = 16 << 10;  // cost that one client may have waiting
  int64_t workers = 1;              // threads that call work()
  // Maximum time the first sentence of a closed batch waits for more. After a fifth of it without a
  // new sentence, none is expected. Sentences whose turn comes after another batch wait as well:
  // clients that were answered by it ask again.
  std::chrono::microseconds delay{5000};
  bool interrupts = true;  // a thread may begin a batch while an older one of its own pauses
};

// One step of a batch, for figures.
struct BatchStep {
  int64_t began = 0;                  // sentences that joined it before this step
  double waited = 0;                  // the longest wait of these
  int64_t sentences = 0, tokens = 0;  // of all that are under way in this batch
  double seconds = 0;
};

// Joins the sentences of many requests into batches. Several threads may call work() for all
// models; any thread may add. Sentences join a running batch if their model supports it. Clients
// are served evenly, whatever they send: Note [Fairness]. Requests of one kind are served in the
// order in which they came, kinds by turns, and a request of many sentences delays no other of the
// same client: Note [Turns].
class Batcher {
 public:
  explicit Batcher(const BatcherOptions& options)
      : options_(options), queue_(options.queue_tokens) {}

  // False if too much of this client is waiting. A task without parts is finished on the next
  // work().
  bool add(std::shared_ptr<Task> task);

  // Waits until something is there, for `patience` at most; then translates one batch, and whatever
  // joins or interrupts it until `leave`, if set, returns true. False if nothing came. Does not
  // throw: a task that cannot be begun fails.
  using Leave = std::function<bool()>;
  bool work(std::chrono::milliseconds patience, const Leave& leave = nullptr);

  bool has_room(const std::string& client, int64_t cost) const;  // whether add() would accept it
  size_t waiting() const;                                        // tasks
  int64_t waiting_cost() const;
  bool full() const;  // requests of new clients might be rejected: FairQueue::full
  void wake();        // threads that wait in work() return as after a timeout
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
    int64_t sentences = 0, tokens = 0;  // places and cost
  };
  // A batch of a thread. Its clients are one heavy client or several light ones.
  struct Batch {
    Line line = {};
    std::shared_ptr<ClientQueue> leader = {};  // the client that it was begun for
    const Batch* below = nullptr;              // that this one interrupts
    bool open = false;                         // its line's sentences can join it
    bool paused = false;                       // another batch interrupts it
    Load load = {}, few = {};                  // of all items; of requests of few sentences
    std::map<int64_t, Item> items = {};        // under way, by number
    std::map<const ClientQueue*, int64_t> clients = {};  // the number of items of each
    int64_t numbers = 0;                                 // given so far
    int64_t steps = 0;                                   // since some joined

    bool takes(const Task& task) const;  // whether it may join, if there is room
    int64_t rank() const;                // the highest of its clients'
    int64_t depth() const { return below ? below->depth() + 1 : 1; }
  };

  bool can_begin() const;
  bool can_begin(const ClientQueue& client) const;
  bool can_begin(const Task& task) const;
  bool has_room_for(const ClientQueue& client) const;
  Load load_of(const ClientQueue& client, Load Batch::*which) const;
  void begin(Batch& batch, const ClientQueue& client);
  void abandon(Batch& batch, const std::string& why);
  void end(Batch& batch);
  const ClientQueue* next_client() const;
  const Task& next_task(const std::vector<Task*>& tasks);  // REQUIRES: one can begin
  bool others_wait(const Batch& batch) const;
  bool is_served(const Task& task) const;
  const ClientQueue* client_before(const Batch& batch) const;
  void let_others_pass(Batch& batch, const Leave& leave);
  void take(Batch& batch);
  void take_more(Batch& batch);
  int64_t share(const Batch& batch, const std::vector<Task*>& tasks) const;
  enum class Taken { one, none, no_room };
  Taken take_part(Batch& batch, Task& task);
  bool take_parts(Batch& batch, Task& task, const std::function<bool()>& room);
  void count(Batch& batch, const Item& item, int64_t sign);
  // For more sentences to share the batch: they come together, or not at all.
  // REQUIRES: a task is there
  Task::Clock::time_point patient_until() const;
  void drop_unwanted();
  static bool prepare(Task& task);
  void run(Batch& batch, const Leave& leave);
  void charge(const Batch& batch);
  void translate(Batch& batch, Translating& under_way, const Leave& leave);
  void deliver(Batch& batch, int64_t number, Translation translation);
  static void tell(Task& task, size_t part, Translation& translation);
  static void give_up(Batch& batch, const std::string& why);
  static void complete(Task& task);
  void complete_ended();

  BatcherOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_, ended_batch_;
  FairQueue queue_;
  std::vector<std::shared_ptr<Task>> ended_;  // without any parts left
  std::vector<const Batch*> batches_;         // under way
  Line last_;                                 // that had its turn
  Task::Clock::time_point free_since_ = {};   // when the last batch ended that nobody could join
  Task::Clock::time_point dropped_ = {};      // when unwanted tasks were looked for last
  uint64_t wakes_ = 0;
  bool paused_ = false, round_ = true;  // round_: the last turn was one that goes round
};

}  // namespace fovea

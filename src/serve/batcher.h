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
#include "serve/translation_task.h"

namespace fovea {

// The options of a batcher.
struct BatcherOptions {
  // A group of clients is one heavy client, or all light clients: see Note [Fairness].
  int64_t batch_tokens = 1024;      // maximum cost of the running batches of a group of clients
  int64_t batch_sentences = 64;     // maximum slots of these batches; default beam: 1 per sentence
  int64_t queue_tokens = 16 << 10;  // maximum cost of the waiting requests of one client
  int64_t workers = 1;              // number of threads that call work()
  // Maximum time that the first sentence of a closed batch waits for more sentences. (No sentence
  // can join a closed batch after its start.) If a fifth of this time passes without a new
  // sentence, the batch begins. The time starts again when another batch ends, because its clients
  // then send their next requests.
  std::chrono::microseconds delay{5000};
  bool interrupts = true;  // a thread may pause its batch and run another batch
};

// One decoding step of a batch, for metrics.
struct BatchStep {
  int64_t began = 0;                  // the number of sentences that joined before this step
  double waited = 0;                  // the longest time that one of them waited, in seconds
  int64_t sentences = 0, tokens = 0;  // the load of the batch
  double seconds = 0;
};

// A scheduler that combines the sentences of many requests into batches and translates them
// (continuous batching). Thread-safe: any thread may call add(), and several worker threads may
// call work(). New sentences join a running batch if the model supports it. Note [Fairness]
// explains how clients share the workers, and Note [Batch order] in which order requests are
// served.
class Batcher {
 public:
  explicit Batcher(const BatcherOptions& options)
      : options_(options), queue_(options.queue_tokens) {}

  // Adds a task. Returns false if the queue of its client is full. The next call of work() finishes
  // a task without parts.
  bool add(std::shared_ptr<TranslationTask> task);

  // Waits at most `patience` for a task. Then translates a batch, including the sentences that join
  // it and the batches that interrupt it. If `leave` is set, stops when it returns true. Returns
  // false if there was no task. Does not throw: if a task cannot begin, it fails.
  using Leave = std::function<bool()>;
  bool work(std::chrono::milliseconds patience, const Leave& leave = nullptr);

  bool would_accept(const std::string& client,
                    int64_t cost) const;  // whether add() would accept it
  size_t waiting() const;                 // number of waiting tasks
  int64_t waiting_cost() const;
  bool full() const;  // whether the queue might reject requests of new clients
  void wake();        // makes threads that wait in work() return, as after a timeout
  // Calls `act` while no batch runs. `act` must not throw.
  void pause(const std::function<void()>& act);
  // If set, worker threads call this after each step. Set it before threads call work().
  std::function<void(const BatchStep&)> observe = nullptr;

 private:
  struct Item {
    std::shared_ptr<TranslationTask> task;
    size_t part = 0;
  };
  // The key of tasks that can share a batch: their model and decode options, or `alone` for all
  // tasks that share no batch. `model` is only compared, because without tasks it may be a dangling
  // pointer.
  struct BatchKey {
    const ServedModel* model = nullptr;
    DecodeOptions decoding = {};
    bool alone = false;
    bool matches(const TranslationTask& task) const;
  };
  struct Load {
    int64_t sentences = 0, tokens = 0;  // number of slots; cost
  };
  // A batch of a worker thread. It serves one heavy client or several light clients.
  struct Batch {
    BatchKey key = {};
    std::shared_ptr<ClientQueue> leader = {};  // the client for which it began
    const Batch* interrupted = nullptr;        // the batch that this one interrupts
    bool open = false;                         // sentences with its key can join it
    bool paused = false;                       // another batch interrupts it
    Load load = {}, small_load = {};           // of all items; of the items of small tasks
    std::map<int64_t, Item> items = {};        // sentences under way, by item number
    std::map<const ClientQueue*, int64_t> clients = {};  // the number of items of each client
    int64_t numbers = 0;  // number of items so far: the next item number
    int64_t steps = 0;    // number of steps since sentences joined

    bool takes(const TranslationTask& task) const;  // whether it may join, if the batch is not full
    int64_t rank() const;                           // the highest rank of its clients
    int64_t depth() const { return interrupted ? interrupted->depth() + 1 : 1; }
  };

  bool can_begin() const;
  bool can_begin(const ClientQueue& client) const;
  bool can_begin(const TranslationTask& task) const;
  bool has_capacity_for(const ClientQueue& client) const;
  Load load_of(const ClientQueue& client, Load Batch::*which) const;
  void begin(Batch& batch, const ClientQueue& client);
  void abandon(Batch& batch, const std::string& why);
  void end(Batch& batch);
  const ClientQueue* next_client() const;
  const TranslationTask& next_task(
      const std::vector<TranslationTask*>& tasks);  // REQUIRES: one of the tasks can begin
  bool must_end(const Batch& batch) const;
  bool can_join_running(const TranslationTask& task) const;
  const ClientQueue* interrupting_client(const Batch& batch) const;
  void run_interrupting_batches(Batch& batch, const Leave& leave);
  void take(Batch& batch);
  void take_more(Batch& batch);
  int64_t thread_share(const Batch& batch, const std::vector<TranslationTask*>& tasks) const;
  enum class TakeResult { one, none, full };
  TakeResult take_part(Batch& batch, TranslationTask& task);
  bool take_parts(Batch& batch, TranslationTask& task, const std::function<bool()>& fits_more);
  void count(Batch& batch, const Item& item, int64_t sign);
  // REQUIRES: a task is waiting
  TranslationTask::Clock::time_point batching_deadline() const;
  void drop_unwanted();
  static bool prepare(TranslationTask& task);
  void run(Batch& batch, const Leave& leave);
  void charge(const Batch& batch);
  void translate(Batch& batch, TranslationSession& under_way, const Leave& leave);
  void deliver(Batch& batch, int64_t number, Translation translation);
  static void notify(TranslationTask& task, size_t part, Translation& translation);
  static void fail_tasks(Batch& batch, const std::string& why);
  static void complete(TranslationTask& task);
  void complete_ended();

  BatcherOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_, ended_batch_;
  FairQueue queue_;
  std::vector<std::shared_ptr<TranslationTask>> ended_;  // tasks without remaining parts
  std::vector<const Batch*> batches_;                    // all batches under way
  BatchKey last_;                                        // key of the last batch that began
  TranslationTask::Clock::time_point free_since_ = {};   // the end of the last closed batch
  TranslationTask::Clock::time_point last_drop_ = {};    // last call of drop_unwanted()
  uint64_t wakes_ = 0;
  bool paused_ = false, round_robin_ = true;  // round_robin_: the rule of the last batch
};

}  // namespace fovea

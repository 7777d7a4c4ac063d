#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "serve/translation_task.h"

namespace fovea {

// The waiting tasks of one client, and the amount of work done for it.
struct ClientQueue {
  std::string name;
  std::deque<std::shared_ptr<TranslationTask>> tasks = {};  // with parts that are not in a batch
  size_t alone = 0;     // the number of tasks that share no batch
  int64_t waiting = 0;  // cost of the waiting parts
  int64_t slots = 0;    // slots of all parts, waiting or in a batch
  int64_t served = 0;   // rows computed for the client, plus its start value: Note [Fairness]

  bool light() const { return slots <= kLightSlots; }
  // The client with the lowest rank is served next.
  int64_t rank() const { return light() ? served - kHeadStart : served; }

  static constexpr int64_t kLightSlots = 8;
  static constexpr int64_t kHeadStart = 1024;
};

// Whether parts of both clients may be in one batch.
inline bool same_group(const ClientQueue& a, const ClientQueue& b) {
  return &a == &b || (a.light() && b.light());
}

// A queue of the waiting tasks of all clients, with limits of their cost. Not thread-safe: the
// mutex of the batcher guards it.
class FairQueue {
 public:
  // `most` is the maximum cost of the waiting tasks of one client. The limit of all clients
  // together is four times as high.
  explicit FairQueue(int64_t most) : most_(most) {}
  ~FairQueue() {  // a client and its tasks own each other
    for (const auto& [name, client] : clients_) client->tasks.clear();
  }
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  // Whether the queue accepts a task. A client without waiting tasks may add one of any cost while
  // the limit of all clients is not reached.
  bool fits(const std::string& client, int64_t cost) const;
  bool full() const;  // whether a small request of a new client might be rejected
  void add(std::shared_ptr<TranslationTask> task);  // REQUIRES: parts() > 0

  // Removes the next part of the task for a batch. Call erase_taken() after the last take().
  void take(TranslationTask& task);
  void erase_taken(ClientQueue& client);
  // Drops the waiting parts of tasks for which `unwanted` is true. Returns the tasks that have no
  // part in a batch either.
  std::vector<std::shared_ptr<TranslationTask>> drop(
      const std::function<bool(const TranslationTask&)>& unwanted);
  // Records that this number of parts of the task left their batch or were dropped.
  void release(const TranslationTask& task, size_t parts);
  // Records that the model computed one step of a part of the task.
  void charge_step(const TranslationTask& task);

  // Whether another client sent a request in the last ten seconds.
  bool has_other_clients(const ClientQueue& client) const;

  // Returns the clients with waiting tasks.
  const std::vector<ClientQueue*>& busy() const { return busy_; }
  // Returns the tasks of the client, or of all light clients if it is light, in the order of
  // service.
  std::vector<TranslationTask*> group_of(const ClientQueue& client) const;
  // Moves these tasks to the end of the order of service.
  void move_to_back(const std::vector<TranslationTask*>& tasks);

  bool empty() const { return busy_.empty(); }
  size_t tasks() const;
  int64_t cost() const { return cost_; }
  size_t clients() const { return clients_.size(); }

 private:
  std::shared_ptr<ClientQueue> client_of(const std::string& name);
  void forget_idle();
  void charge(ClientQueue& client, int64_t rows);  // REQUIRES: the client has parts
  int64_t least_served() const { return served_.empty() ? most_served_ : *served_.begin(); }

  int64_t most_, cost_ = 0;
  uint64_t last_position_ = 0;
  std::unordered_map<std::string, std::shared_ptr<ClientQueue>> clients_;
  std::vector<ClientQueue*> busy_;
  std::multiset<int64_t> served_;  // `served` of all clients with parts
  int64_t most_served_ = 0;        // start value of a client if no other client has parts
  // The client of the last request, and the last other client before it.
  struct Visit {
    std::string client;
    TranslationTask::Clock::time_point when;
  };
  Visit last_ = {}, other_ = {};
};

}  // namespace fovea

#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "serve/task.h"

namespace fovea {

// The requests of one client, and how much work was done for it.
struct ClientQueue {
  std::string name;
  std::deque<std::shared_ptr<Task>> tasks = {};  // with parts that no batch has taken yet
  size_t alone = 0;                              // of these, tasks that share no batch
  int64_t waiting = 0;                           // cost of the parts in tasks
  int64_t places = 0;                            // of all parts, waiting or in a batch
  int64_t served = 0;  // rows computed for the client, from a common start: Note [Fairness]

  bool light() const { return places <= kLightPlaces; }
  // The client of the lowest rank is served next.
  int64_t rank() const { return light() ? served - kHeadStart : served; }

  static constexpr int64_t kLightPlaces = 8;
  static constexpr int64_t kHeadStart = 1024;
};

// Whether parts of both clients may be in one batch.
inline bool same_group(const ClientQueue& a, const ClientQueue& b) {
  return &a == &b || (a.light() && b.light());
}

// Requests that wait, by client, within limits of their cost. Not thread-safe: the batcher's mutex
// guards it.
class FairQueue {
 public:
  // `most`: the cost that one client may have waiting. All clients together may have four times as
  // much, shared evenly among those that need more.
  explicit FairQueue(int64_t most) : most_(most) {}
  ~FairQueue() {  // a client and its tasks own each other
    for (const auto& [name, client] : clients_) client->tasks.clear();
  }
  FairQueue(const FairQueue&) = delete;
  FairQueue& operator=(const FairQueue&) = delete;

  // Whether a request may wait. A client without any waiting request may add one of any cost while
  // the queue of all clients is not full.
  bool fits(const std::string& client, int64_t cost) const;
  bool full() const;                     // a small request of a new client might be rejected
  void add(std::shared_ptr<Task> task);  // REQUIRES: parts() > 0

  // A batch takes the next part of the task. Call erase_taken() after the last take().
  void take(Task& task);
  void erase_taken(ClientQueue& client);
  // Drops the waiting parts of tasks for which `unwanted` is true. Returns those of the tasks that
  // have no part in a batch either.
  std::vector<std::shared_ptr<Task>> drop(const std::function<bool(const Task&)>& unwanted);
  // So many parts of the task are in no batch any more.
  void release(const Task& task, size_t parts);
  // The model computed one step of a part of the task.
  void charge_step(const Task& task);

  // Whether another client asked lately.
  bool has_company(const ClientQueue& client) const;

  // Clients with waiting tasks.
  const std::vector<ClientQueue*>& busy() const { return busy_; }
  // The tasks that may share batches with those of the client, in the order of their turns.
  std::vector<Task*> group_of(const ClientQueue& client) const;
  // Moves these tasks behind all others.
  void move_behind(const std::vector<Task*>& tasks);

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
  uint64_t turns_ = 0;
  std::unordered_map<std::string, std::shared_ptr<ClientQueue>> clients_;
  std::vector<ClientQueue*> busy_;
  std::multiset<int64_t> served_;  // of the clients with parts, for each `served`
  int64_t most_served_ = 0;        // where a client starts that comes while no other has parts
  // The client that asked last, and the last one before it with another name.
  struct Visit {
    std::string client;
    Task::Clock::time_point when;
  };
  Visit last_ = {}, other_ = {};
};

}  // namespace fovea

#include "serve/fair_queue.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace fovea {
namespace {

// Note [Fairness]
// A client is an API key or a group of addresses. Two limits keep one client from the others:
// Admission: a client may have only so much waiting, and the limit of all clients is several times
// that, so that a client that floods leaves room for the rest.
// Order: `served` counts the rows that were computed for a client (hypotheses × steps, and source
// pieces). The client that was served least is next (start-time fair queueing). A client that comes
// back after a pause starts where the least served of the active clients is, so that a pause earns
// nothing.
// A client with at most kLightPlaces places, waiting and in batches, is light. Light clients share
// batches, and have a head start. A heavy client has batches of its own, and a batch of a client
// that was served less interrupts them between two steps of the search (Batcher::let_others_pass).
// Sharing a batch would not do: a step takes as long as all its rows need, so that a single
// sentence among the many of a flood would take many times its normal time.
constexpr int64_t kAllClients = 4;     // how much all may have waiting, in shares of one client
constexpr int64_t kSmallRequest = 64;  // cost
constexpr size_t kMostIdle = 1024;     // clients that are remembered without any work
constexpr int64_t kDefaultBeam = 4;
constexpr std::chrono::seconds kLately{10};

}  // namespace

int64_t estimated_tokens(std::string_view sentence) {
  return 2 + static_cast<int64_t>(sentence.size()) / 4;
}

int64_t translation_cost(int64_t tokens, const Wish& wish) {
  const int64_t rows = std::max({wish.beam, wish.n_best, kDefaultBeam});
  return (tokens * rows + kDefaultBeam - 1) / kDefaultBeam;
}

int64_t Task::cost_of(size_t part) const {
  const int64_t own =
      sentences.empty() ? 0 : translation_cost(estimated_tokens(sentences[part]), wish);
  return part == 0 ? own + cost : own;
}

int64_t Task::places() const { return sentences.empty() ? 1 : translation_cost(1, wish); }

bool FairQueue::fits(const std::string& client, int64_t cost) const {
  const int64_t free = kAllClients * most_ - cost_;
  const auto found = clients_.find(client);
  const int64_t waiting = found == clients_.end() ? 0 : found->second->waiting;
  return waiting == 0 ? free > 0 : waiting + cost <= std::min(most_, free);
}

bool FairQueue::full() const {
  return kAllClients * most_ - cost_ < std::max(kSmallRequest, most_ / 10);
}

void FairQueue::charge(ClientQueue& client, int64_t rows) {
  assert(client.places > 0);
  auto entry = served_.extract(served_.find(client.served));
  entry.value() = client.served += rows;
  most_served_ = std::max(most_served_, client.served);
  served_.insert(std::move(entry));
}

std::shared_ptr<ClientQueue> FairQueue::client_of(const std::string& name) {
  const auto found = clients_.find(name);
  if (found != clients_.end()) return found->second;
  if (clients_.size() >= served_.size() + kMostIdle) forget_idle();
  auto client = std::make_shared<ClientQueue>(ClientQueue{.name = name});
  clients_.emplace(name, client);
  return client;
}

void FairQueue::forget_idle() {
  std::erase_if(clients_, [](const auto& entry) { return entry.second->places == 0; });
}

void FairQueue::add(std::shared_ptr<Task> task) {
  const std::shared_ptr<ClientQueue> client = client_of(task->client);
  if (busy_.capacity() < clients_.size()) busy_.reserve(2 * clients_.size());
  Visit visit{client->name, task->arrived};
  const int64_t served = std::max(client->served, least_served());
  std::multiset<int64_t> entry;
  if (client->places == 0) entry.insert(served);
  client->tasks.push_back(task);  // the last that may throw
  if (!entry.empty()) {
    client->served = served;
    served_.merge(entry);
  }
  if (client->tasks.size() == 1) busy_.push_back(client.get());
  int64_t cost = 0;
  for (size_t part = 0; part < task->parts(); ++part) cost += task->cost_of(part);
  client->waiting += cost;
  client->places += static_cast<int64_t>(task->parts()) * task->places();
  client->alone += task->alone ? 1 : 0;
  cost_ += cost;
  task->turn = ++turns_;
  task->queue = client;
  if (last_.client != client->name) std::swap(last_, other_);
  last_ = std::move(visit);
}

bool FairQueue::has_company(const ClientQueue& client) const {
  const Visit& other = last_.client == client.name ? other_ : last_;
  return other.when > Task::Clock::now() - kLately;
}

void FairQueue::take(Task& task) {
  ClientQueue& client = *task.queue;
  const int64_t cost = task.cost_of(task.taken);
  charge(client, task.sentences.empty() ? cost : estimated_tokens(task.sentences[task.taken]));
  client.waiting -= cost;
  cost_ -= cost;
  ++task.taken;
}

void FairQueue::erase_taken(ClientQueue& client) {
  std::erase_if(client.tasks, [&](const auto& task) {
    const bool all = task->taken == task->parts();
    if (all && task->alone) --client.alone;
    return all;
  });
  if (client.tasks.empty()) std::erase(busy_, &client);
}

std::vector<std::shared_ptr<Task>> FairQueue::drop(
    const std::function<bool(const Task&)>& unwanted) {
  std::vector<std::shared_ptr<Task>> dropped;
  for (ClientQueue* client : busy_)
    std::ranges::copy_if(client->tasks, std::back_inserter(dropped),
                         [&](const auto& task) { return unwanted(*task); });
  std::vector<std::shared_ptr<ClientQueue>> changed;
  for (const auto& task : dropped) changed.push_back(task->queue);
  const auto ended = [&](const std::shared_ptr<Task>& task) {
    for (size_t part = task->taken; part < task->parts(); ++part) {
      task->queue->waiting -= task->cost_of(part);
      cost_ -= task->cost_of(part);
    }
    const size_t parts = task->parts() - task->taken;
    task->taken = task->parts();
    task->missed = true;
    release(*task, parts);
    return (task->left -= parts) == 0;  // else the thread of its last part completes it
  };
  std::erase_if(dropped, [&](const auto& task) { return !ended(task); });
  for (const auto& client : changed) erase_taken(*client);
  return dropped;
}

void FairQueue::release(const Task& task, size_t parts) {
  ClientQueue& client = *task.queue;
  client.places -= static_cast<int64_t>(parts) * task.places();
  assert(client.places >= 0);
  if (parts > 0 && client.places == 0) served_.erase(served_.find(client.served));
}

void FairQueue::charge_step(const Task& task) { charge(*task.queue, task.wish.beam); }

std::vector<Task*> FairQueue::group_of(const ClientQueue& client) const {
  std::vector<Task*> group;
  if (!client.light()) {
    for (const auto& task : client.tasks) group.push_back(task.get());
    return group;
  }
  for (const ClientQueue* other : busy_)
    if (other->light())
      for (const auto& task : other->tasks) group.push_back(task.get());
  std::ranges::sort(group, {}, &Task::turn);
  return group;
}

void FairQueue::move_behind(const std::vector<Task*>& tasks) {
  for (Task* task : tasks) task->turn = ++turns_;
  for (ClientQueue* client : busy_)
    if (!std::ranges::is_sorted(client->tasks, {}, [](const auto& task) { return task->turn; }))
      std::ranges::sort(client->tasks, {}, [](const auto& task) { return task->turn; });
}

size_t FairQueue::tasks() const {
  size_t count = 0;
  for (const ClientQueue* client : busy_) count += client->tasks.size();
  return count;
}

}  // namespace fovea

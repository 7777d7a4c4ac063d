#include "serve/fair_queue.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace fovea {
namespace {

// Note [Fairness]
// A client is an API key or a group of addresses. Two mechanisms limit the effect of one client on
// the others:
//
// Admission: the cost of the waiting tasks of a client is limited. The limit of all clients
// together is several times as high, so that a client that floods the queue leaves space for the
// others.
//
// Order: `served` counts the rows that were computed for a client (hypotheses × steps, and source
// pieces). The client with the lowest count is next (start-time fair queueing). A client that
// becomes active again starts with at least the lowest count of the active clients, so that a pause
// earns no credit.
//
// A client is light if its parts (sentences), waiting and in batches, have at most kLightSlots
// slots; otherwise it is heavy. Light clients share batches and have a head start. A heavy client
// has its own batches. If another client has a lower count, its batch interrupts the batch of the
// heavy client between two steps (Batcher::run_interrupting_batches). Heavy and light clients
// cannot share a batch: the time of a step depends on all rows of the batch, so a single sentence
// among the many sentences of a flood would take many times its normal time.
constexpr int64_t kAllClients = 4;  // limit of all clients, in multiples of the limit of one client
constexpr int64_t kSmallRequest = 64;  // cost of a small request
constexpr size_t kMostIdle = 1024;     // maximum number of stored clients without work
constexpr int64_t kDefaultBeam = 4;
constexpr std::chrono::seconds kRecent{10};

}  // namespace

int64_t estimated_tokens(std::string_view sentence) {
  return 2 + static_cast<int64_t>(sentence.size()) / 4;
}

int64_t translation_cost(int64_t tokens, const DecodeOptions& decoding) {
  const int64_t rows = std::max({decoding.beam, decoding.n_best, kDefaultBeam});
  return (tokens * rows + kDefaultBeam - 1) / kDefaultBeam;
}

int64_t TranslationTask::cost_of(size_t part) const {
  const int64_t own =
      sentences.empty() ? 0 : translation_cost(estimated_tokens(sentences[part]), decoding);
  return part == 0 ? own + cost : own;
}

int64_t TranslationTask::slots() const {
  return sentences.empty() ? 1 : translation_cost(1, decoding);
}

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
  assert(client.slots > 0);
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
  std::erase_if(clients_, [](const auto& entry) { return entry.second->slots == 0; });
}

void FairQueue::add(std::shared_ptr<TranslationTask> task) {
  const std::shared_ptr<ClientQueue> client = client_of(task->client);
  if (busy_.capacity() < clients_.size()) busy_.reserve(2 * clients_.size());
  Visit visit{client->name, task->arrived};
  const int64_t served = std::max(client->served, least_served());
  std::multiset<int64_t> entry;
  if (client->slots == 0) entry.insert(served);
  client->tasks.push_back(task);  // after this line, no call throws
  if (!entry.empty()) {
    client->served = served;
    served_.merge(entry);
  }
  if (client->tasks.size() == 1) busy_.push_back(client.get());
  int64_t cost = 0;
  for (size_t part = 0; part < task->parts(); ++part) cost += task->cost_of(part);
  client->waiting += cost;
  client->slots += static_cast<int64_t>(task->parts()) * task->slots();
  client->alone += task->alone ? 1 : 0;
  cost_ += cost;
  task->position = ++last_position_;
  task->queue = client;
  if (last_.client != client->name) std::swap(last_, other_);
  last_ = std::move(visit);
}

bool FairQueue::has_other_clients(const ClientQueue& client) const {
  const Visit& other = last_.client == client.name ? other_ : last_;
  return other.when > TranslationTask::Clock::now() - kRecent;
}

void FairQueue::take(TranslationTask& task) {
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

std::vector<std::shared_ptr<TranslationTask>> FairQueue::drop(
    const std::function<bool(const TranslationTask&)>& unwanted) {
  std::vector<std::shared_ptr<TranslationTask>> dropped;
  for (ClientQueue* client : busy_)
    std::ranges::copy_if(client->tasks, std::back_inserter(dropped),
                         [&](const auto& task) { return unwanted(*task); });
  std::vector<std::shared_ptr<ClientQueue>> changed;
  for (const auto& task : dropped) changed.push_back(task->queue);
  const auto ended = [&](const std::shared_ptr<TranslationTask>& task) {
    for (size_t part = task->taken; part < task->parts(); ++part) {
      task->queue->waiting -= task->cost_of(part);
      cost_ -= task->cost_of(part);
    }
    const size_t parts = task->parts() - task->taken;
    task->taken = task->parts();
    task->missed = true;
    release(*task, parts);
    return (task->left -= parts) == 0;  // otherwise the thread of its last part completes the task
  };
  std::erase_if(dropped, [&](const auto& task) { return !ended(task); });
  for (const auto& client : changed) erase_taken(*client);
  return dropped;
}

void FairQueue::release(const TranslationTask& task, size_t parts) {
  ClientQueue& client = *task.queue;
  client.slots -= static_cast<int64_t>(parts) * task.slots();
  assert(client.slots >= 0);
  if (parts > 0 && client.slots == 0) served_.erase(served_.find(client.served));
}

void FairQueue::charge_step(const TranslationTask& task) {
  charge(*task.queue, task.decoding.beam);
}

std::vector<TranslationTask*> FairQueue::group_of(const ClientQueue& client) const {
  std::vector<TranslationTask*> group;
  if (!client.light()) {
    for (const auto& task : client.tasks) group.push_back(task.get());
    return group;
  }
  for (const ClientQueue* other : busy_)
    if (other->light())
      for (const auto& task : other->tasks) group.push_back(task.get());
  std::ranges::sort(group, {}, &TranslationTask::position);
  return group;
}

void FairQueue::move_to_back(const std::vector<TranslationTask*>& tasks) {
  for (TranslationTask* task : tasks) task->position = ++last_position_;
  for (ClientQueue* client : busy_)
    if (!std::ranges::is_sorted(client->tasks, {}, [](const auto& task) { return task->position; }))
      std::ranges::sort(client->tasks, {}, [](const auto& task) { return task->position; });
}

size_t FairQueue::tasks() const {
  size_t count = 0;
  for (const ClientQueue* client : busy_) count += client->tasks.size();
  return count;
}

}  // namespace fovea

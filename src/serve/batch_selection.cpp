#include <algorithm>
#include <cassert>
#include <set>
#include <tuple>

#include "serve/batcher.h"

// Selects the client, the key and the tasks of a batch.
namespace fovea {
namespace {

// Note [Batch order]
// Only sentences with the same batch key (the same model and decode options) can share a batch. So
// the tasks of a group of clients form one request queue per batch key. A group is one heavy
// client, or all light clients (Note [Fairness] in fair_queue.cpp).
//
// Running batches: when sentences of a batch finish, the batch admits more sentences of its queue,
// as long as each of the other queues has a running batch, too. Otherwise the batch admits no more
// sentences, and when it ends, another queue gets the next batch.
//
// Next batch: two rules alternate. One batch goes to the next queue in round-robin order; each
// queue that gets a batch moves to the back of that order. The following batch goes to the queue of
// the oldest task. No queue gets two successive batches while others wait.
//
// Consequently a queue waits for at most two batches per queue before it, regardless of the lengths
// of the queues. Half of the batches go to the queue of the oldest task, regardless of the number
// of newer tasks. If all tasks have the same batch key, there is only one queue.
//
// Within a queue: tasks are served in the order of arrival, with two exceptions, which delay the
// overtaken tasks only slightly. If enough sentences of a task are under way (in a batch), the next
// task is served first. A fifth of the slots is reserved for small tasks, for which a person may be
// waiting.
//
// Tasks that cannot share a batch (explanations and interventions) form one queue. At most one
// thread runs one of these tasks at a time.
constexpr size_t kEnoughUnderWay = 48;  // sentences of a task in batches while others wait
constexpr size_t kSmallTask = 8;        // the maximum number of sentences of a small task
constexpr int64_t kShareOfSmall = 5;    // one slot of this number is reserved for small tasks

constexpr int64_t kMostGroups = 4;  // heavy clients with batches; also nested batches of a thread
constexpr int64_t kLightPatience = 128;  // rows by which one light client may be ahead of another

// The maximum cost of the sentences that join per step. A step cannot be interrupted, so other
// clients wait for its end, and encoding costs as much as a step with the same number of rows.
constexpr int64_t kMaxJoiningCost = 128;
constexpr int64_t kShareWithOthers =
    4;  // divides the size of the batches of a heavy client while other clients are active

bool is_small(const TranslationTask& task) { return task.sentences.size() <= kSmallTask; }

}  // namespace

bool Batcher::BatchKey::matches(const TranslationTask& task) const {
  if (alone || task.alone) return alone && task.alone;
  return task.model.get() == model && task.decoding == decoding;
}

bool Batcher::Batch::takes(const TranslationTask& task) const {
  return key.matches(task) && same_group(*leader, *task.queue) &&
         std::ranges::all_of(clients,
                             [&](const auto& c) { return same_group(*c.first, *task.queue); });
}

int64_t Batcher::Batch::rank() const {
  if (clients.empty()) return leader->rank();
  int64_t most = clients.begin()->first->rank();
  for (const auto& [client, items] : clients) most = std::max(most, client->rank());
  return most;
}

// Returns the load of all batches of the client, or of all light clients if it is light.
Batcher::Load Batcher::load_of(const ClientQueue& client, Load Batch::*which) const {
  Load all;
  for (const Batch* batch : batches_) {
    if (!same_group(*batch->leader, client)) continue;
    all.sentences += (batch->*which).sentences;
    all.tokens += (batch->*which).tokens;
  }
  return all;
}

bool Batcher::has_capacity_for(const ClientQueue& client) const {
  const Load load = load_of(client, &Batch::load);
  if (load.tokens >= options_.batch_tokens || load.sentences >= options_.batch_sentences)
    return false;
  if (load.sentences > 0 || client.light()) return true;
  std::set<const ClientQueue*> heavy;
  for (const Batch* batch : batches_)
    if (!batch->leader->light()) heavy.insert(batch->leader.get());
  return std::ssize(heavy) < kMostGroups;
}

bool Batcher::can_begin(const TranslationTask& task) const {
  if (task.alone)
    return std::ranges::none_of(batches_, [](const Batch* batch) { return batch->key.alone; });
  return has_capacity_for(*task.queue);
}

bool Batcher::can_begin(const ClientQueue& client) const {
  if (client.alone > 0 &&
      std::ranges::none_of(batches_, [](const Batch* batch) { return batch->key.alone; }))
    return true;
  return client.tasks.size() > client.alone && has_capacity_for(client);
}

bool Batcher::can_begin() const {
  return !paused_ && std::ranges::any_of(queue_.busy(), [this](const ClientQueue* client) {
    return can_begin(*client);
  });
}

// Returns the client for which the next batch begins, or null if there is none.
const ClientQueue* Batcher::next_client() const {
  const ClientQueue* next = nullptr;
  const auto order = [](const ClientQueue& client) {
    return std::tuple(client.rank(), client.tasks.front()->arrived);
  };
  if (paused_) return nullptr;
  for (const ClientQueue* client : queue_.busy())
    if (can_begin(*client) && (!next || order(*client) < order(*next))) next = client;
  return next;
}

// Whether a running batch admits the task when it has free slots.
bool Batcher::can_join_running(const TranslationTask& task) const {
  return std::ranges::any_of(batches_, [&](const Batch* batch) {
    return !batch->paused && (batch->open || batch->key.alone) && batch->takes(task);
  });
}

const TranslationTask& Batcher::next_task(const std::vector<TranslationTask*>& tasks) {
  round_robin_ = !round_robin_;
  const auto order = [&](const TranslationTask* task) {
    return std::tuple(!can_begin(*task), can_join_running(*task), last_.matches(*task),
                      round_robin_ ? TranslationTask::Clock::time_point() : task->arrived);
  };
  return **std::ranges::min_element(tasks, {}, order);
}

void Batcher::begin(Batch& batch, const ClientQueue& client) {
  const TranslationTask& first = next_task(queue_.group_of(client));
  batch.key = first.alone ? BatchKey{.alone = true} : BatchKey{first.model.get(), first.decoding};
  batch.leader = first.queue;
  batch.open = !batch.key.alone && batch.key.model->can_extend();
  last_ = batch.key;
  batches_.push_back(&batch);
  take(batch);
  assert(!batch.items.empty());
  std::vector<TranslationTask*> same_key = queue_.group_of(*batch.leader);
  std::erase_if(same_key, [&](const TranslationTask* task) { return !batch.key.matches(*task); });
  queue_.move_to_back(same_key);
  if (can_begin()) arrived_.notify_one();  // wakes a thread for another batch
}

// Returns the client whose batch must run before the next step of this batch, or null if there is
// none.
const ClientQueue* Batcher::interrupting_client(const Batch& batch) const {
  if (!options_.interrupts || paused_ || batch.depth() >= kMostGroups) return nullptr;
  int64_t least = batch.rank() - (batch.leader->light() ? kLightPatience : 0);
  const ClientQueue* next = nullptr;
  for (const ClientQueue* client : queue_.busy()) {
    if (client->rank() >= least || !can_begin(*client)) continue;
    const auto served = [&](const auto& task) {
      return batch.takes(*task) || can_join_running(*task);
    };
    const bool all = client->light() ? std::ranges::all_of(client->tasks, served)
                                     : served(client->tasks.front());
    if (all) continue;
    next = client;
    least = client->rank();
  }
  return next;
}

// Whether this batch must end because another queue or client waits for a batch.
bool Batcher::must_end(const Batch& batch) const {
  if (batch.interrupted && batch.interrupted->rank() < batch.rank()) return true;
  const auto unserved = [&](const TranslationTask* task) {
    return !batch.takes(*task) && !can_join_running(*task);
  };
  if (std::ranges::any_of(queue_.group_of(*batch.leader), unserved)) return true;
  return std::ranges::any_of(queue_.busy(), [&](const ClientQueue* client) {
    return !same_group(*client, *batch.leader) && client->rank() <= batch.rank() &&
           unserved(client->tasks.front().get());
  });
}

// Returns the number of slots that a batch may fill so that all threads get about the same number.
int64_t Batcher::thread_share(const Batch& batch,
                              const std::vector<TranslationTask*>& tasks) const {
  int64_t all = load_of(*batch.leader, &Batch::load).sentences;
  for (const TranslationTask* task : tasks) {
    if (all >= options_.batch_sentences) break;
    if (batch.takes(*task))
      all += static_cast<int64_t>(task->parts() - task->taken) * task->slots();
  }
  all = std::min(all, options_.batch_sentences);
  return (all + options_.workers - 1) / options_.workers;
}

// Adds the next part (sentence) of the task to the batch.
Batcher::TakeResult Batcher::take_part(Batch& batch, TranslationTask& task) {
  if (task.taken == task.parts()) return TakeResult::none;
  const Load load = load_of(*batch.leader, &Batch::load);
  const int64_t tokens = load.tokens + task.cost_of(task.taken);
  const bool first = batch.items.empty() && load.tokens < options_.batch_tokens;
  const bool fits =
      (first || tokens <= options_.batch_tokens) && load.sentences < options_.batch_sentences;
  if (!fits && !task.alone) return TakeResult::full;
  const Item item{task.shared_from_this(), task.taken};
  batch.clients.try_emplace(task.queue.get(), 0);  // after this only the next line can throw
  batch.items.emplace(batch.numbers, item);
  ++batch.numbers;
  queue_.take(task);
  count(batch, item, 1);
  return TakeResult::one;
}

// Adds parts of the task while `fits_more` is true. Returns false if a part does not fit: then
// later tasks must not overtake this one.
bool Batcher::take_parts(Batch& batch, TranslationTask& task,
                         const std::function<bool()>& fits_more) {
  while (fits_more()) {
    const TakeResult taken = take_part(batch, task);
    if (taken != TakeResult::one) return taken == TakeResult::none;
  }
  return true;
}

// Adds an item to the load (sign 1) or removes it (sign -1). Tasks without sentences have no load.
void Batcher::count(Batch& batch, const Item& item, int64_t sign) {
  const TranslationTask& task = *item.task;
  const auto client = batch.clients.find(task.queue.get());
  if ((client->second += sign) == 0) batch.clients.erase(client);
  if (sign < 0) queue_.release(task, 1);
  if (task.sentences.empty()) return;
  const auto add = [&](Load& load) {
    load.sentences += sign * task.slots();
    load.tokens += sign * task.cost_of(item.part);
  };
  item.task->under_way += static_cast<size_t>(sign);
  add(batch.load);
  if (is_small(task) && !task.alone) add(batch.small_load);
}

// Fills the batch with tasks of its key. A batch of tasks that share no batch takes one task.
void Batcher::take(Batch& batch) {
  const std::vector<TranslationTask*> tasks = queue_.group_of(*batch.leader);
  const bool others_ask = !batch.leader->light() && queue_.has_other_clients(*batch.leader);
  const int64_t part = others_ask ? kShareWithOthers : 1;
  const int64_t most = (thread_share(batch, tasks) + part - 1) / part;
  const int64_t before = batch.load.tokens;
  const auto fits_more = [&] {
    const bool first = batch.load.sentences == 0;
    const bool many = batch.open && (batch.load.tokens - before) * part >= kMaxJoiningCost;
    return batch.load.sentences < most && !many &&
           (first || batch.load.tokens * options_.workers < options_.batch_tokens);
  };
  const auto fits_small = [&] {
    const Load small_load = load_of(*batch.leader, &Batch::small_load);
    return fits_more() && (small_load.sentences == 0 ||
                           (small_load.tokens < options_.batch_tokens / kShareOfSmall &&
                            small_load.sentences < options_.batch_sentences / kShareOfSmall));
  };
  // Calls act(task) for each task with the key of the batch, until it returns false or the batch is
  // full.
  const auto each = [&](const auto& act) {
    for (TranslationTask* task : tasks)
      if (batch.takes(*task) && (!fits_more() || !act(*task))) return false;
    return true;
  };
  const auto take_small = [&](TranslationTask& task) {
    return !is_small(task) || take_parts(batch, task, fits_small);
  };
  const auto take_some = [&](TranslationTask& task) {
    return take_parts(batch, task, [&] { return fits_more() && task.under_way < kEnoughUnderWay; });
  };
  const auto take_all = [&](TranslationTask& task) { return take_parts(batch, task, fits_more); };
  if (batch.key.alone) {
    TranslationTask& only = **std::ranges::find_if(tasks, &TranslationTask::alone);
    while (take_part(batch, only) == TakeResult::one) continue;
  } else {
    each(take_small) && each(take_some) && each(take_all);
  }
  std::set<ClientQueue*> clients;
  for (const TranslationTask* task : tasks) clients.insert(task->queue.get());
  for (ClientQueue* client : clients) queue_.erase_taken(*client);
}

// Admits sentences to a running batch. Encoding few sentences takes longer per sentence than
// encoding many, so a large batch admits sentences only every few steps.
void Batcher::take_more(Batch& batch) {
  constexpr int64_t kSentencesPerStep = 16;
  constexpr std::chrono::milliseconds kOften{10};
  if (!batch.open || ++batch.steps < std::ssize(batch.items) / kSentencesPerStep) return;
  const std::lock_guard hold(mutex_);
  if (queue_.empty() || paused_) return;
  if (TranslationTask::Clock::now() > last_drop_ + kOften) drop_unwanted();
  const Load load = load_of(*batch.leader, &Batch::load);
  const bool full =
      load.tokens >= options_.batch_tokens || load.sentences >= options_.batch_sentences;
  if (full || must_end(batch)) return;
  take(batch);
  batch.steps = 0;
}

// Returns the time until which a closed batch, which no sentence can join later, waits for more
// sentences before it starts. Sentences usually arrive at the same time or not at all, so the wait
// also ends early (BatcherOptions::delay).
TranslationTask::Clock::time_point Batcher::batching_deadline() const {
  constexpr int kShareOfPause = 5;
  auto first = TranslationTask::Clock::time_point::max(),
       last = TranslationTask::Clock::time_point::min();
  for (const ClientQueue* client : queue_.busy())
    for (const auto& task : client->tasks) {
      if (task->alone || task->model->can_extend()) return {};
      first = std::min(first, task->arrived);
      last = std::max(last, task->arrived);
    }
  return std::min(std::max(first, free_since_) + options_.delay,
                  std::max(last, free_since_) + options_.delay / kShareOfPause);
}

}  // namespace fovea

#include <algorithm>
#include <cassert>
#include <set>
#include <tuple>

#include "serve/batcher.h"

// Which client, which line and which tasks a batch takes from.
namespace fovea {
namespace {

// Note [Turns]
// Only sentences with the same model and the same wish can share a batch: the requests of a client,
// or of all light clients, wait in as many lines as there are of these. A batch takes more of its
// line as others of it are done, while no other line waits of which no batch is under way; then it
// takes no more, and when it has ended another line has its turn. Every other turn goes round: the
// line that has its turn goes behind the others. The turns between belong to the line of the
// request that came first of all. No line has two turns together while others wait. So a line waits
// for no more than two batches for each line before it, however long they are; the request that
// came first has half of the batches, however many others come; and a load of one kind is served as
// if there were no lines. In a line requests are served in the order in which they came, with two
// exceptions, which cost the overtaken requests little: a request of many sentences gives way to
// the next while enough of them are under way, and requests of a few sentences, for which a person
// may be waiting, have a fifth of the places for themselves.
// Tasks that share no batch (the inside of a model, what-ifs) wait in a line of their own, of which
// one thread at most does one task at a time.
constexpr size_t kEnough = 48;  // sentences of one request under way while others wait
constexpr size_t kFew = 8;
constexpr int64_t kShareOfFew = 5;

constexpr int64_t kMostGroups = 4;  // heavy clients with batches; batches that one thread holds
constexpr int64_t kLightPatience = 128;  // rows that one light client may be ahead of another

// A step cannot be interrupted, so that others wait for its end. Encoding costs as much as a step
// with as many rows: only some sentences join at a time.
constexpr int64_t kJoiningCost = 128;
constexpr int64_t kCareful = 4;  // divides the batch of a heavy client while others ask

bool is_few(const Task& task) { return task.sentences.size() <= kFew; }

}  // namespace

bool Batcher::Line::has(const Task& task) const {
  if (alone || task.alone) return alone && task.alone;
  return task.engine.get() == engine && task.wish == wish;
}

bool Batcher::Batch::takes(const Task& task) const {
  return line.has(task) && same_group(*leader, *task.queue) &&
         std::ranges::all_of(clients,
                             [&](const auto& c) { return same_group(*c.first, *task.queue); });
}

int64_t Batcher::Batch::rank() const {
  if (clients.empty()) return leader->rank();
  int64_t most = clients.begin()->first->rank();
  for (const auto& [client, items] : clients) most = std::max(most, client->rank());
  return most;
}

// Of all batches of the client, or of the light ones.
Batcher::Load Batcher::load_of(const ClientQueue& client, Load Batch::*which) const {
  Load all;
  for (const Batch* batch : batches_) {
    if (!same_group(*batch->leader, client)) continue;
    all.sentences += (batch->*which).sentences;
    all.tokens += (batch->*which).tokens;
  }
  return all;
}

bool Batcher::has_room_for(const ClientQueue& client) const {
  const Load load = load_of(client, &Batch::load);
  if (load.tokens >= options_.batch_tokens || load.sentences >= options_.batch_sentences)
    return false;
  if (load.sentences > 0 || client.light()) return true;
  std::set<const ClientQueue*> heavy;
  for (const Batch* batch : batches_)
    if (!batch->leader->light()) heavy.insert(batch->leader.get());
  return std::ssize(heavy) < kMostGroups;
}

bool Batcher::can_begin(const Task& task) const {
  if (task.alone)
    return std::ranges::none_of(batches_, [](const Batch* batch) { return batch->line.alone; });
  return has_room_for(*task.queue);
}

bool Batcher::can_begin(const ClientQueue& client) const {
  if (client.alone > 0 &&
      std::ranges::none_of(batches_, [](const Batch* batch) { return batch->line.alone; }))
    return true;
  return client.tasks.size() > client.alone && has_room_for(client);
}

bool Batcher::can_begin() const {
  return !paused_ && std::ranges::any_of(queue_.busy(), [this](const ClientQueue* client) {
    return can_begin(*client);
  });
}

// Null if there is none.
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

// Whether a running batch takes it, as soon as there is room.
bool Batcher::is_served(const Task& task) const {
  return std::ranges::any_of(batches_, [&](const Batch* batch) {
    return !batch->paused && (batch->open || batch->line.alone) && batch->takes(task);
  });
}

const Task& Batcher::next_task(const std::vector<Task*>& tasks) {
  round_ = !round_;
  const auto order = [&](const Task* task) {
    return std::tuple(!can_begin(*task), is_served(*task), last_.has(*task),
                      round_ ? Task::Clock::time_point() : task->arrived);
  };
  return **std::ranges::min_element(tasks, {}, order);
}

void Batcher::begin(Batch& batch, const ClientQueue& client) {
  const Task& first = next_task(queue_.group_of(client));
  batch.line = first.alone ? Line{.alone = true} : Line{first.engine.get(), first.wish};
  batch.leader = first.queue;
  batch.open = !batch.line.alone && batch.line.engine->joins();
  last_ = batch.line;
  batches_.push_back(&batch);
  take(batch);
  assert(!batch.items.empty());
  std::vector<Task*> behind = queue_.group_of(*batch.leader);
  std::erase_if(behind, [&](const Task* task) { return !batch.line.has(*task); });
  queue_.move_behind(behind);
  if (can_begin()) arrived_.notify_one();  // there is work for another thread, too
}

// The client whose batch goes before the next step of this one; null if there is none.
const ClientQueue* Batcher::client_before(const Batch& batch) const {
  if (!options_.interrupts || paused_ || batch.depth() >= kMostGroups) return nullptr;
  int64_t least = batch.rank() - (batch.leader->light() ? kLightPatience : 0);
  const ClientQueue* next = nullptr;
  for (const ClientQueue* client : queue_.busy()) {
    if (client->rank() >= least || !can_begin(*client)) continue;
    const auto served = [&](const auto& task) { return batch.takes(*task) || is_served(*task); };
    const bool all = client->light() ? std::ranges::all_of(client->tasks, served)
                                     : served(client->tasks.front());
    if (all) continue;
    next = client;
    least = client->rank();
  }
  return next;
}

// Whether this batch must end for others to have their turn.
bool Batcher::others_wait(const Batch& batch) const {
  if (batch.below && batch.below->rank() < batch.rank()) return true;
  const auto unserved = [&](const Task* task) { return !batch.takes(*task) && !is_served(*task); };
  if (std::ranges::any_of(queue_.group_of(*batch.leader), unserved)) return true;
  return std::ranges::any_of(queue_.busy(), [&](const ClientQueue* client) {
    return !same_group(*client, *batch.leader) && client->rank() <= batch.rank() &&
           unserved(client->tasks.front().get());
  });
}

// Places that a batch may fill for all threads to have as many.
int64_t Batcher::share(const Batch& batch, const std::vector<Task*>& tasks) const {
  int64_t all = load_of(*batch.leader, &Batch::load).sentences;
  for (const Task* task : tasks) {
    if (all >= options_.batch_sentences) break;
    if (batch.takes(*task))
      all += static_cast<int64_t>(task->parts() - task->taken) * task->places();
  }
  all = std::min(all, options_.batch_sentences);
  return (all + options_.workers - 1) / options_.workers;
}

// The next part of the task.
Batcher::Taken Batcher::take_part(Batch& batch, Task& task) {
  if (task.taken == task.parts()) return Taken::none;
  const Load load = load_of(*batch.leader, &Batch::load);
  const int64_t tokens = load.tokens + task.cost_of(task.taken);
  const bool first = batch.items.empty() && load.tokens < options_.batch_tokens;
  const bool fits =
      (first || tokens <= options_.batch_tokens) && load.sentences < options_.batch_sentences;
  if (!fits && !task.alone) return Taken::no_room;
  const Item item{task.shared_from_this(), task.taken};
  batch.clients.try_emplace(task.queue.get(), 0);  // nothing below throws but the next
  batch.items.emplace(batch.numbers, item);
  ++batch.numbers;
  queue_.take(task);
  count(batch, item, 1);
  return Taken::one;
}

// As many as there is room for. False if one does not fit, which no task behind it may overtake.
bool Batcher::take_parts(Batch& batch, Task& task, const std::function<bool()>& room) {
  while (room()) {
    const Taken taken = take_part(batch, task);
    if (taken != Taken::one) return taken == Taken::none;
  }
  return true;
}

// A task without sentences is no load.
void Batcher::count(Batch& batch, const Item& item, int64_t sign) {
  const Task& task = *item.task;
  const auto client = batch.clients.find(task.queue.get());
  if ((client->second += sign) == 0) batch.clients.erase(client);
  if (sign < 0) queue_.release(task, 1);
  if (task.sentences.empty()) return;
  const auto add = [&](Load& load) {
    load.sentences += sign * task.places();
    load.tokens += sign * task.cost_of(item.part);
  };
  item.task->under_way += static_cast<size_t>(sign);
  add(batch.load);
  if (is_few(task) && !task.alone) add(batch.few);
}

// Parts of the batch's line; of tasks that share no batch, one task.
void Batcher::take(Batch& batch) {
  const std::vector<Task*> tasks = queue_.group_of(*batch.leader);
  const bool careful = !batch.leader->light() && queue_.has_company(*batch.leader);
  const int64_t part = careful ? kCareful : 1;
  const int64_t most = (share(batch, tasks) + part - 1) / part;
  const int64_t before = batch.load.tokens;
  const auto room = [&] {
    const bool first = batch.load.sentences == 0;
    const bool many = batch.open && (batch.load.tokens - before) * part >= kJoiningCost;
    return batch.load.sentences < most && !many &&
           (first || batch.load.tokens * options_.workers < options_.batch_tokens);
  };
  const auto room_for_few = [&] {
    const Load few = load_of(*batch.leader, &Batch::few);
    return room() &&
           (few.sentences == 0 || (few.tokens < options_.batch_tokens / kShareOfFew &&
                                   few.sentences < options_.batch_sentences / kShareOfFew));
  };
  // Calls act(task) for each of the line while it is true and there is room.
  const auto each = [&](const auto& act) {
    for (Task* task : tasks)
      if (batch.takes(*task) && (!room() || !act(*task))) return false;
    return true;
  };
  const auto take_few = [&](Task& task) {
    return !is_few(task) || take_parts(batch, task, room_for_few);
  };
  const auto take_some = [&](Task& task) {
    return take_parts(batch, task, [&] { return room() && task.under_way < kEnough; });
  };
  const auto take_all = [&](Task& task) { return take_parts(batch, task, room); };
  if (batch.line.alone) {
    Task& only = **std::ranges::find_if(tasks, &Task::alone);
    while (take_part(batch, only) == Taken::one) continue;
  } else {
    each(take_few) && each(take_some) && each(take_all);
  }
  std::set<ClientQueue*> clients;
  for (const Task* task : tasks) clients.insert(task->queue.get());
  for (ClientQueue* client : clients) queue_.erase_taken(*client);
}

// Encoding a few sentences takes longer for each than encoding many, so that a large batch takes
// some only every few steps.
void Batcher::take_more(Batch& batch) {
  constexpr int64_t kSentencesPerStep = 16;
  constexpr std::chrono::milliseconds kOften{10};
  if (!batch.open || ++batch.steps < std::ssize(batch.items) / kSentencesPerStep) return;
  const std::lock_guard hold(mutex_);
  if (queue_.empty() || paused_) return;
  if (Task::Clock::now() > dropped_ + kOften) drop_unwanted();
  const Load load = load_of(*batch.leader, &Batch::load);
  const bool full =
      load.tokens >= options_.batch_tokens || load.sentences >= options_.batch_sentences;
  if (full || others_wait(batch)) return;
  take(batch);
  batch.steps = 0;
}

// For more sentences to share a closed batch: they come together, or not at all.
Task::Clock::time_point Batcher::patient_until() const {
  constexpr int kShareOfPause = 5;
  auto first = Task::Clock::time_point::max(), last = Task::Clock::time_point::min();
  for (const ClientQueue* client : queue_.busy())
    for (const auto& task : client->tasks) {
      if (task->alone || task->engine->joins()) return {};
      first = std::min(first, task->arrived);
      last = std::max(last, task->arrived);
    }
  return std::min(std::max(first, free_since_) + options_.delay,
                  std::max(last, free_since_) + options_.delay / kShareOfPause);
}

}  // namespace fovea

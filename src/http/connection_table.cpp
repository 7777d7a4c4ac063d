#include "http/connection_table.h"

#include <cassert>
#include <utility>

namespace fovea {

ConnectionTable::~ConnectionTable() { assert(size_ == 0); }

ConnectionTable::Entry* ConnectionTable::longest_waiting(const Client& client) {
  for (const Queue& queue : client.waiting)
    if (!queue.empty()) return queue.front();
  return nullptr;
}

void ConnectionTable::evict(Entry& entry) {
  const std::function<void()> act = std::move(entry.evict_);  // `act` outlives the entry
  act();
}

bool ConnectionTable::make_space(const std::string& client) {
  const auto known = clients_.find(client);
  if (limits_.client > 0 && known != clients_.end() &&
      known->second.connections >= limits_.client) {
    Entry* const entry = longest_waiting(known->second);
    if (!entry) return false;
    evict(*entry);
  }
  if (size_ >= limits_.all) evict_any();
  return true;
}

bool ConnectionTable::evict_any() {
  if (ranks_.empty()) return false;
  evict(*std::get<Entry*>(*ranks_.rbegin()));
  return true;
}

void ConnectionTable::rank(Client& client) {
  std::optional<Rank> now;
  if (Entry* const entry = longest_waiting(client))
    now = Rank{client.connections, -static_cast<int>(entry->stage_), ~entry->since_, entry};
  if (now == client.rank) return;
  if (client.rank) ranks_.erase(*client.rank);
  if (now) ranks_.insert(*now);
  client.rank = now;
}

std::unique_ptr<ConnectionTable::Entry> ConnectionTable::add(const std::string& client,
                                                             std::function<void()> evict) {
  return std::unique_ptr<Entry>(new Entry(*this, client, std::move(evict)));
}

ConnectionTable::Entry::Entry(ConnectionTable& table, const std::string& client,
                              std::function<void()> evict)
    : table_(table), name_(client), client_(table.clients_[client]), evict_(std::move(evict)) {
  ++table_.size_;
  ++table_.working_;
  ++client_.connections;
  enter(ConnectionStage::idle);
}

ConnectionTable::Entry::~Entry() {
  enter(ConnectionStage::working);
  --table_.working_;
  --table_.size_;
  if (--client_.connections == 0)
    table_.clients_.erase(name_);
  else
    table_.rank(client_);
}

void ConnectionTable::Entry::remove_from_queue() {
  if (stage_ == ConnectionStage::working)
    --table_.working_;
  else
    client_.waiting[static_cast<size_t>(stage_)].erase(at_);
}

void ConnectionTable::Entry::enter(ConnectionStage stage) {
  if (stage == stage_) return;
  remove_from_queue();
  stage_ = stage;
  since_ = ++table_.order_;
  if (stage == ConnectionStage::working) {
    ++table_.working_;
  } else {
    Queue& queue = client_.waiting[static_cast<size_t>(stage)];
    at_ = queue.insert(queue.end(), this);
  }
  table_.rank(client_);
}

void ByteBudget::change(const std::string& client, size_t before, size_t now) {
  if (before == now) return;
  all_ += now - before;
  size_t& own = clients_[client];
  own += now - before;
  if (own == 0) clients_.erase(client);
}

bool ByteBudget::allows(const std::string& client, size_t own) const {
  const auto known = clients_.find(client);
  const size_t of_client = known == clients_.end() ? 0 : known->second;
  return (of_client == own || of_client <= limits_.client) && (all_ == own || all_ <= limits_.all);
}

}  // namespace fovea

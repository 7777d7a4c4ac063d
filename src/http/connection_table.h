#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

namespace fovea {

// The stage of a connection. In stage `working` it waits for the server. In the other stages it
// waits for its client and may be evicted: idle first, writing last.
enum class ConnectionStage { idle, reading, writing, working };

// A table of the open connections by client, within limits. If a new connection exceeds a limit,
// the table evicts a connection that waits for its client. Of the clients with such a connection,
// it selects the one with the most connections. It evicts an idle connection of this client, else
// one with an incomplete request, else one with an unread reply, and always the one that has waited
// longest. All operations take O(log clients). Not thread-safe: only the I/O thread uses it.
class ConnectionTable {
 public:
  struct Limits {
    size_t all;
    size_t client;  // 0: no limit
  };
  class Entry;

  explicit ConnectionTable(Limits limits) : limits_(limits) {}
  ~ConnectionTable();

  // Evicts a connection if `client`, or all clients together, are at their limit. Returns false if
  // the client is at its limit and all its connections wait for the server: then the caller must
  // refuse the new connection.
  bool make_space(const std::string& client);
  // Adds a connection in stage idle. Destroying the entry removes it. `evict` must destroy the
  // entry before it returns.
  std::unique_ptr<Entry> add(const std::string& client, std::function<void()> evict);
  bool evict_any();  // false if all connections wait for the server
  bool can_admit() const { return size_ < limits_.all || size_ > working_; }
  size_t size() const { return size_; }
  size_t clients() const { return clients_.size(); }

 private:
  using Queue = std::list<Entry*>;
  // The rank of the longest waiting entry of a client. The entry with the highest rank is evicted
  // first.
  using Rank = std::tuple<size_t, int, size_t, Entry*>;
  struct Client {
    size_t connections = 0;
    std::array<Queue, 3> waiting = {};  // by stage; longest waiting first
    std::optional<Rank> rank = {};      // the entry of the client in ranks_
  };
  static Entry* longest_waiting(const Client& client);
  void rank(Client& client);  // updates the rank after a change
  static void evict(Entry& entry);

  Limits limits_;
  std::unordered_map<std::string, Client> clients_;
  std::set<Rank> ranks_;  // of the clients with an entry that may be evicted
  size_t size_ = 0, working_ = 0;
  size_t order_ = 0;  // counts the changes of stage
};

// A connection in the table. It must not outlive the table.
class ConnectionTable::Entry {
 public:
  ~Entry();
  void enter(ConnectionStage stage);
  ConnectionStage stage() const { return stage_; }

 private:
  friend class ConnectionTable;
  Entry(ConnectionTable& table, const std::string& client, std::function<void()> evict);
  void remove_from_queue();

  ConnectionTable& table_;
  std::string name_;
  Client& client_;
  std::function<void()> evict_;
  ConnectionStage stage_ = ConnectionStage::working;
  Queue::iterator at_ = {};  // valid unless the stage is working
  size_t since_ = 0;
};

// A counter of the bytes that the server holds for its clients, with a limit per client and one for
// all clients. A limit never applies to the only holder, so that every single request fits. Not
// thread-safe: only the I/O thread uses it.
class ByteBudget {
 public:
  struct Limits {
    size_t all, client;
  };
  explicit ByteBudget(Limits limits) : limits_(limits) {}

  // Records that a request of `client` now holds `now` bytes instead of `before`.
  void change(const std::string& client, size_t before, size_t now);
  bool allows(const std::string& client, size_t own) const;
  size_t all() const { return all_; }
  size_t clients() const { return clients_.size(); }

 private:
  Limits limits_;
  std::unordered_map<std::string, size_t> clients_;
  size_t all_ = 0;
};

}  // namespace fovea

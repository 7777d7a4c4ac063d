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

// What a connection waits for. Only one in `working` waits for the server; the others wait for
// their client and may be evicted, in this order.
enum class Stage { idle, reading, writing, working };

// The open connections by client, within limits. When a new connection needs a place, the table
// evicts one that waits for its client: of the client with the most connections, first idle ones,
// then incomplete requests, then replies that are not read, each time the one that waits longest.
// Everything takes O(log clients). Used by the server's thread alone.
class ConnectionTable {
 public:
  struct Limits {
    size_t all;
    size_t client;  // 0: no limit
  };
  class Place;

  explicit ConnectionTable(Limits limits) : limits_(limits) {}
  ~ConnectionTable();

  // Evicts a connection if `client` or all clients together are at their limit. False if the
  // client is at its limit and all its connections wait for the server: refuse the new one.
  bool make_room(const std::string& client);
  // A place in stage idle until it is destroyed. `evict` must destroy the place before it returns.
  std::unique_ptr<Place> add(const std::string& client, std::function<void()> evict);
  bool evict_any();  // false if all connections wait for the server
  bool can_admit() const { return size_ < limits_.all || size_ > working_; }
  size_t size() const { return size_; }
  size_t clients() const { return clients_.size(); }

 private:
  using Queue = std::list<Place*>;
  // Of a client's place that waits longest. The highest of all clients is evicted first.
  using Rank = std::tuple<size_t, int, size_t, Place*>;
  struct Client {
    size_t connections = 0;
    std::array<Queue, 3> waiting = {};  // by stage; the one that waits longest first
    std::optional<Rank> rank = {};      // its entry in ranks_
  };
  static Place* longest_waiting(const Client& client);
  void rank(Client& client);  // again, after a change
  static void evict(Place& place);

  Limits limits_;
  std::unordered_map<std::string, Client> clients_;
  std::set<Rank> ranks_;  // of clients that have a place to evict
  size_t size_ = 0, working_ = 0;
  size_t order_ = 0;  // of changes of stage
};

class ConnectionTable::Place {
 public:
  ~Place();
  void enter(Stage stage);
  Stage stage() const { return stage_; }

 private:
  friend class ConnectionTable;
  Place(ConnectionTable& table, const std::string& client, std::function<void()> evict);
  void remove_from_queue();

  ConnectionTable& table_;
  std::string name_;
  Client& client_;
  std::function<void()> evict_;
  Stage stage_ = Stage::working;
  Queue::iterator at_ = {};  // valid unless the stage is working
  size_t since_ = 0;
};

// Bytes that the server holds for its clients, within a limit for one client and one for all. A
// limit never applies to a holder that is the only one, so that every single request fits.
// Used by the server's thread alone.
class ByteBudget {
 public:
  struct Limits {
    size_t all, client;
  };
  explicit ByteBudget(Limits limits) : limits_(limits) {}

  // A holder of `client` has `now` bytes instead of `before`.
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

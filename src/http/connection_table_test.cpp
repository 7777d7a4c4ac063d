#include "http/connection_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea {
namespace {

// Connections that note which of them were evicted.
class ConnectionTableTest : public testing::Test {
 protected:
  struct Connection {
    std::string name;
    std::unique_ptr<ConnectionTable::Entry> entry;
  };
  Connection& open(const std::string& client, const std::string& name,
                   ConnectionStage stage = ConnectionStage::idle) {
    Connection& made = connections.emplace_back(Connection{name, nullptr});
    made.entry = table.add(client, [this, &made] {
      evicted += made.name;
      made.entry.reset();
    });
    made.entry->enter(stage);
    return made;
  }
  bool admit(const std::string& client, const std::string& name,
             ConnectionStage stage = ConnectionStage::idle) {
    if (!table.make_space(client)) return false;
    open(client, name, stage);
    return true;
  }

  ConnectionTable table{{.all = 6, .client = 4}};
  std::list<Connection> connections;
  std::string evicted;
};

TEST_F(ConnectionTableTest, EvictsTheLongestIdleOfTheClientItself) {
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(admit("1.1.1.1", name));
  connections.front().entry->enter(ConnectionStage::reading);
  connections.front().entry->enter(ConnectionStage::idle);  // now "b" waits longest
  EXPECT_TRUE(admit("1.1.1.1", "e"));
  EXPECT_EQ(evicted, "b");
  EXPECT_EQ(table.size(), 4u);
  EXPECT_TRUE(admit("2.2.2.2", "x"));
  EXPECT_EQ(evicted, "b") << "the table was not full";
}

TEST_F(ConnectionTableTest, EvictsOfTheClientWithTheMostConnectionsWhenItIsFull) {
  ASSERT_TRUE(admit("2.2.2.2", "x"));
  ASSERT_TRUE(admit("3.3.3.3", "y"));
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(admit("1.1.1.1", name));
  EXPECT_TRUE(admit("4.4.4.4", "z"));
  EXPECT_EQ(evicted, "a");
  EXPECT_TRUE(admit("4.4.4.4", "z"));
  EXPECT_EQ(evicted, "ab");
}

TEST_F(ConnectionTableTest, EvictsIdleThenIncompleteThenUnread) {
  ASSERT_TRUE(admit("1.1.1.1", "w", ConnectionStage::writing));
  ASSERT_TRUE(admit("1.1.1.1", "r", ConnectionStage::reading));
  ASSERT_TRUE(admit("1.1.1.1", "q", ConnectionStage::working));
  ASSERT_TRUE(admit("1.1.1.1", "i"));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(admit("1.1.1.1", "-", ConnectionStage::working));
  EXPECT_EQ(evicted, "irw");
  EXPECT_FALSE(admit("1.1.1.1", "-")) << "all of them wait for the server";
  EXPECT_TRUE(admit("2.2.2.2", "x", ConnectionStage::working)) << "it has space for others";
}

TEST_F(ConnectionTableTest, EvictsByStageThenByWaitAmongEqualClients) {
  const auto at = [&](const char* client, ConnectionStage stage) {
    ASSERT_TRUE(admit(client, client, stage));
  };
  at("w", ConnectionStage::writing);
  at("r", ConnectionStage::reading);
  at("s", ConnectionStage::reading);
  at("i", ConnectionStage::idle);
  at("j", ConnectionStage::idle);
  at("k", ConnectionStage::idle);
  for (Connection& each : connections)
    if (each.name == "i" || each.name == "r") {
      const ConnectionStage stage = each.entry->stage();
      each.entry->enter(ConnectionStage::working);
      each.entry->enter(stage);  // now it waits for the shortest time of its stage
    }
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(table.evict_any());
  EXPECT_EQ(evicted, "jkisrw");
  EXPECT_EQ(table.clients(), 0u) << "clients that left are forgotten";
}

TEST_F(ConnectionTableTest, AdmitsNothingWhileAllWaitForTheServer) {
  for (const char* client : {"1", "2", "3", "4", "5", "6"}) {
    EXPECT_TRUE(table.can_admit());
    ASSERT_TRUE(admit(client, client, ConnectionStage::working));
  }
  EXPECT_FALSE(table.can_admit());
  EXPECT_FALSE(table.evict_any());
  connections.back().entry->enter(ConnectionStage::writing);
  EXPECT_TRUE(table.can_admit());
  EXPECT_TRUE(table.evict_any());
  EXPECT_EQ(evicted, "6");
  EXPECT_EQ(table.size(), 5u);
}

TEST_F(ConnectionTableTest, WithoutALimitPerClientOneMayHaveAll) {
  ConnectionTable behind_proxy({.all = 6, .client = 0});
  std::vector<std::unique_ptr<ConnectionTable::Entry>> entries;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(behind_proxy.make_space("proxy"));
    entries.push_back(behind_proxy.add("proxy", [] { FAIL(); }));
    entries.back()->enter(ConnectionStage::working);
  }
  EXPECT_EQ(behind_proxy.size(), 6u);
}

TEST(ByteBudget, HasALimitForAClientAndForAll) {
  ByteBudget budget({.all = 100, .client = 40});
  budget.change("a", 0, 500);
  EXPECT_TRUE(budget.allows("a", 500)) << "the only holder";
  budget.change("a", 500, 30);
  budget.change("a", 0, 10);
  EXPECT_TRUE(budget.allows("a", 10));
  budget.change("a", 10, 11);
  EXPECT_FALSE(budget.allows("a", 11)) << "41 of one client";
  for (const char* client : {"b", "c"}) {
    budget.change(client, 0, 29);
    EXPECT_TRUE(budget.allows(client, 29)) << client;
  }
  budget.change("d", 0, 2);
  EXPECT_FALSE(budget.allows("d", 2)) << "101 of all";
  budget.change("a", 11, 0);
  EXPECT_TRUE(budget.allows("d", 2));
  EXPECT_EQ(budget.all(), 90u);
  for (const auto& [client, bytes] : {std::pair{"a", 30}, {"b", 29}, {"c", 29}, {"d", 2}})
    budget.change(client, static_cast<size_t>(bytes), 0);
  EXPECT_EQ(budget.all(), 0u);
  EXPECT_EQ(budget.clients(), 0u) << "clients without bytes are forgotten";
}

}  // namespace
}  // namespace fovea

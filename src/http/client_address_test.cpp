#include "http/client_address.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(ClientGroup, OfIpv4IsTheAddress) {
  EXPECT_EQ(client_group("192.0.2.1"), "192.0.2.1");
  EXPECT_NE(client_group("192.0.2.1"), client_group("192.0.2.2"));
}

TEST(ClientGroup, OfMappedIpv4IsTheIpv4Address) {
  EXPECT_EQ(client_group("::ffff:192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(client_group("::FFFF:c000:201"), "192.0.2.1");
}

TEST(ClientGroup, OfIpv6IsTheNetworkOf64Bits) {
  EXPECT_EQ(client_group("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(client_group("2001:db8:1:2::"), client_group("2001:0DB8:1:2:ffff::1"));
  EXPECT_NE(client_group("2001:db8:1:2::1"), client_group("2001:db8:1:3::1"));
  EXPECT_EQ(client_group("::1"), "::/64");
  EXPECT_EQ(client_group("fe80::1%eth0"), "fe80::/64");
}

TEST(ClientGroup, OfAnythingElseIsItself) {
  for (const char* text : {"", "unknown", "1.2.3", "2001:db8::g", "example.com", "%", ":::"})
    EXPECT_EQ(client_group(text), text);
}

}  // namespace
}  // namespace fovea

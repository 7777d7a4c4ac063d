#pragma once

#include <string>
#include <string_view>

namespace fovea {

// The key by which limits count the clients of an address, given as text. An IPv4 address is its
// own group, also when it is mapped into IPv6 (::ffff:192.0.2.1). An IPv6 address belongs to its
// /64 network, because one customer usually owns all of it. Other strings stay as they are.
std::string client_group(std::string_view address);

}  // namespace fovea

#pragma once

#include <string>
#include <string_view>

namespace fovea {

// Returns the client to which limits assign an address, given as text. An IPv4 address is one
// client, also if it is mapped into IPv6 (::ffff:192.0.2.1). All IPv6 addresses of a /64 network
// are one client, because one customer usually owns the whole network. Other strings are returned
// unchanged.
std::string client_group(std::string_view address);

}  // namespace fovea

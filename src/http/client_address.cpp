#include "http/client_address.h"

#include <arpa/inet.h>

#include <algorithm>

namespace fovea {

std::string client_group(std::string_view address) {
  const std::string without_zone(address.substr(0, address.find('%')));  // fe80::1%eth0
  in6_addr bytes{};
  if (inet_pton(AF_INET6, without_zone.c_str(), &bytes) != 1) return std::string(address);
  char text[INET6_ADDRSTRLEN];
  if (IN6_IS_ADDR_V4MAPPED(&bytes)) {
    inet_ntop(AF_INET, bytes.s6_addr + 12, text, sizeof(text));
    return text;
  }
  std::fill(bytes.s6_addr + 8, bytes.s6_addr + 16, uint8_t{0});
  inet_ntop(AF_INET6, &bytes, text, sizeof(text));
  return std::string(text) + "/64";
}

}  // namespace fovea

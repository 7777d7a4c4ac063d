#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fovea {

std::array<uint64_t, 2> random_secret();  // 128 random bits from the system

// SipHash-2-4 of Aumasson and Bernstein. Results cannot be predicted without the secret.
uint64_t sip_hash(const std::array<uint64_t, 2>& secret, std::string_view text);

// The hash function for tables whose keys come from files or requests: SipHash-1-3 with a random
// secret of the process. If the function were known, as std::hash is, the author of a file could
// choose keys of equal hash. Then operations on the table would take quadratic time.
struct TableHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const;
};

}  // namespace fovea

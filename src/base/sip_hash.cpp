#include "base/sip_hash.h"

#include <sys/random.h>

#include <bit>
#include <cstring>

#include "base/check.h"

namespace fovea {
namespace {

static_assert(std::endian::native == std::endian::little, "the words of a text are little-endian");

// SipHash with `per_word` rounds for each eight bytes and `last` rounds at the end.
template <int per_word, int last>
uint64_t hash(const std::array<uint64_t, 2>& secret, std::string_view text) {
  uint64_t a = secret[0] ^ 0x736f6d6570736575, b = secret[1] ^ 0x646f72616e646f6d,
           c = secret[0] ^ 0x6c7967656e657261, d = secret[1] ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
      c += d, d = std::rotl(d, 16) ^ c;
      a += d, d = std::rotl(d, 21) ^ a;
      c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
    }
  };
  const auto absorb = [&](uint64_t word) {
    d ^= word;
    rounds(per_word);
    a ^= word;
  };
  size_t at = 0;
  for (uint64_t word = 0; at + 8 <= text.size(); at += 8) {
    std::memcpy(&word, text.data() + at, 8);
    absorb(word);
  }
  uint64_t end = uint64_t{text.size()} << 56;
  for (size_t i = 0; at + i < text.size(); ++i)
    end |= uint64_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
  absorb(end);
  c ^= 0xff;
  rounds(last);
  return a ^ b ^ c ^ d;
}

}  // namespace

std::array<uint64_t, 2> random_secret() {
  std::array<uint64_t, 2> secret{};
  check(getrandom(secret.data(), sizeof secret, 0) == ssize_t{sizeof secret}, ExitCode::unexpected,
        "cannot read random numbers from the system");
  return secret;
}

uint64_t sip_hash(const std::array<uint64_t, 2>& secret, std::string_view text) {
  return hash<2, 4>(secret, text);
}

size_t TableHash::operator()(std::string_view text) const {
  static const std::array<uint64_t, 2> secret = random_secret();
  return hash<1, 3>(secret, text);
}

}  // namespace fovea

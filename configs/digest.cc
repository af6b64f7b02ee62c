#include "configs/digest.h"

#include <fmt/format.h>

#include <bit>

namespace tpusim::configs {

std::string Digest::Text() const {
  return fmt::format("{:016x}{:016x}", static_cast<uint64_t>(state_ >> 64), Low());
}

void Digest::AddBytes(std::string_view bytes) {
  constexpr State kPrime = (State{1} << 88) + 0x13b;
  for (const char byte : bytes) {
    state_ ^= static_cast<unsigned char>(byte);
    state_ *= kPrime;
  }
}

void Digest::AddOne(std::string_view text) {
  AddWord(text.size());
  AddBytes(text);
}

void Digest::AddOne(double value) { AddWord(std::bit_cast<uint64_t>(value)); }

void Digest::AddWord(uint64_t word) {
  char bytes[sizeof word];
  for (char& byte : bytes) {
    byte = static_cast<char>(word & 0xff);
    word >>= 8;
  }
  AddBytes({bytes, sizeof bytes});
}

}  // namespace tpusim::configs

// Digests of 128 bits: equal values have the same one in every process, build and year.
//
// Files keep digests (the key of a verdict, the checksum of a row), so a hash that is seeded anew
// by every process will not do. This one is FNV-1a of 128 bits: it tells apart inputs that
// come about by accident, and does not protect against inputs made to have the same digest.
#ifndef TPUSIM_CONFIGS_DIGEST_H_
#define TPUSIM_CONFIGS_DIGEST_H_

#include <concepts>
#include <cstdint>
#include <ranges>
#include <string>
#include <string_view>

namespace tpusim::configs {

class Digest {
 public:
  // Values one after the other. Where one ends counts: "ab", "c" is not "a", "bc".
  template <typename... Values>
  Digest& Add(const Values&... values) {
    (AddOne(values), ...);
    return *this;
  }
  // 32 hexadecimal digits.
  std::string Text() const;
  // Returns the last 16 digits.
  uint64_t Low() const { return static_cast<uint64_t>(state_); }

 private:
  __extension__ using State = unsigned __int128;

  void AddBytes(std::string_view bytes);
  void AddOne(std::string_view text);
  void AddOne(double value);
  void AddOne(std::integral auto value) { AddWord(static_cast<uint64_t>(value)); }
  template <std::ranges::range Values>
  requires(!std::convertible_to<Values, std::string_view>) void AddOne(const Values& values) {
    AddWord(static_cast<uint64_t>(std::ranges::distance(values)));
    for (const auto& value : values) AddOne(value);
  }
  void AddWord(uint64_t word);

  State state_ = (State{0x6c62272e07bb0142} << 64) + 0x62b821756295c58d;
};

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_DIGEST_H_

// Colors of a refinement: hashes of what is told apart.
#ifndef TPUSIM_SIM_SYMMETRY_HASH_H_
#define TPUSIM_SIM_SYMMETRY_HASH_H_

#include <cstdint>

namespace tpusim::sim {

// A finalizer with full avalanche (SplitMix64's).
inline uint64_t Hash(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
// `b` is a hash already.
inline uint64_t Add(uint64_t a, uint64_t b) { return Hash(a ^ b); }
inline uint64_t Hash(uint64_t a, uint64_t b) { return Add(a, Hash(b)); }

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_HASH_H_

// The place in the source program that an operation comes from.
#ifndef TPUSIM_MODELS_ISA_PLACE_H_
#define TPUSIM_MODELS_ISA_PLACE_H_

#include <compare>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tpusim::isa {

struct Place {
  std::string scope;   // "jit(f)/layer", with or without the primitive behind it
  std::string source;  // "file.py:12"
  auto operator<=>(const Place&) const = default;
};

// The places of an operation. A kernel has many lines, and counts where its matrix product is, or
// else where its result is made.
struct OpPlaces {
  Place main;
  std::vector<Place> covered;  // of what does work in a fused kernel, each once, sorted
};
using PlacesOfOps = std::map<std::string, OpPlaces, std::less<>>;  // by operation

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_PLACE_H_

// Places in the source program that operations come from.
#ifndef TPUSIM_MODELS_ISA_PLACE_H_
#define TPUSIM_MODELS_ISA_PLACE_H_

#include <compare>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tpusim::isa {

struct SourcePlace {
  std::string scope;   // "jit(f)/layer", with or without the primitive behind it
  std::string source;  // "file.py:12"
  auto operator<=>(const SourcePlace&) const = default;
};

// The places of an operation. A kernel of many lines counts at that of its matrix product, or else
// of its result.
struct OpPlaces {
  SourcePlace main;
  std::vector<SourcePlace> covered;  // of what does work in a fused kernel, each once, sorted
};
using PlacesOfOps = std::map<std::string, OpPlaces, std::less<>>;  // by operation

}  // namespace tpusim::isa

#endif  // TPUSIM_MODELS_ISA_PLACE_H_

// A computation by numbers, and what part an instruction may have in a kernel.
//
// Fusion asks the same few questions of every instruction many times: who are its
// operands and users, and may a kernel hold it. Here they are answered once.
// Instructions are numbered operands first, so a larger number never feeds a smaller.
#ifndef TPUSIM_WORKLOADS_PASSES_FUSION_GRAPH_H_
#define TPUSIM_WORKLOADS_PASSES_FUSION_GRAPH_H_

#include <unordered_map>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes::fusion {

enum class Part {
  kNone,        // never inside a fusion: control, collectives, sorts, lookups, scalars
  kFree,        // copied into every kernel that uses it: constants, iotas, splats of scalars
  kExpression,  // elementwise work and index transforms: may be computed in any kernel
  kUpdate,      // a dynamic-update-slice: in place, always a result
  kReduce,
  kProduct,  // dots and convolutions
};

Part PartOf(const hlo::Instruction& instruction);

struct Graph {
  explicit Graph(const hlo::Computation& computation);

  int size() const { return static_cast<int>(instructions.size()); }
  bool Is(int i, Part part) const { return parts[i] == part; }
  const hlo::Instruction& At(int i) const { return *instructions[i]; }

  std::vector<hlo::Instruction*> instructions;
  std::vector<Part> parts;
  std::vector<std::vector<int>> operands;  // as in the instruction
  std::vector<std::vector<int>> users;     // each once, ascending
  std::vector<std::vector<int>> controls;  // control predecessors
  std::vector<std::vector<int>> controlled;
  int root = -1;
};

}  // namespace tpusim::passes::fusion

#endif  // TPUSIM_WORKLOADS_PASSES_FUSION_GRAPH_H_

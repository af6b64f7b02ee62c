// Kernels that could be made: what a pass thinks over before it changes the program.
//
// A candidate is a set of instructions of a graph that one kernel would compute, with those
// whose results it would store. The program stays as it is until the pass has decided.
//
// Fusion compares lower bounds of the times of candidates, which take a few additions per
// instruction. Exact times (each candidate fused in a module of its own, lowered and timed) had no
// caller.
#ifndef TPUSIM_WORKLOADS_COST_CANDIDATE_H_
#define TPUSIM_WORKLOADS_COST_CANDIDATE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/kernels/tiling/kernel_library.h"
#include "workloads/target/target.h"

namespace tpusim::cost {

// A computation by numbers, and what part an instruction may have in a kernel.
//
// Fusion and the costs of its candidates ask the same few questions of every instruction
// many times: which are its operands and users, and may a kernel hold it. Here they are
// answered once. Instructions are numbered operands first, so a larger number never feeds a
// smaller.
enum class Part {
  kNone,        // never inside a fusion: control, collectives, sorts, lookups, scalars
  kFree,        // copied into every kernel that uses it: constants, iotas, splats of scalars
  kExpression,  // elementwise work and index transforms: may be computed in any kernel
  kUpdate,      // a dynamic-update-slice: in place, always a result
  kReduce,
  kProduct,  // dots and convolutions
};

Part PartOf(const hlo::Instruction& instruction);

struct KernelGraph {
  explicit KernelGraph(const hlo::Computation& computation);

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

// The arrays that a kernel of some members reads, scalars and what it computes for itself
// aside. Remembers the last kernel that it was asked about.
class KernelInputs {
 public:
  explicit KernelInputs(const KernelGraph& graph);

  // In the order in which the members read them first. Valid until the next call.
  const std::vector<int>& Of(std::span<const int> members);
  // Returns the inputs of the last kernel.
  const std::vector<int>& last() const { return inputs_; }
  bool HasMember(int value) const { return member_at_[value] == stamp_; }
  bool HasInput(int value) const { return input_at_[value] == stamp_; }

 private:
  const KernelGraph& graph_;
  std::vector<char> may_be_input_;
  // Stamps say for which kernel an entry holds.
  int64_t stamp_ = 0;
  std::vector<int64_t> member_at_, input_at_;
  std::vector<int> inputs_;
};

struct Candidate {
  std::span<const int> members;  // ascending: operands first
  std::span<const int> roots;    // ascending, members all of them; what others read
};

// The time of a kernel alone on its chip, and the bytes that it reads and writes in HBM.
struct Price {
  Picoseconds time{0};
  Bytes moved{0};

  Price& operator+=(const Price& other) {
    time += other.time;
    moved += other.moved;
    return *this;
  }
  Price& operator-=(const Price& other) {
    time -= other.time;
    moved -= other.moved;
    return *this;
  }
};

// The costs of candidates over one graph.
class CandidateCosts {
 public:
  virtual ~CandidateCosts() = default;

  // Whether there is a rule for what it costs inside a fusion.
  virtual bool HasRule(int instruction) const = 0;
  // A time that the candidate's kernel does not fall below, and the bytes that it moves.
  virtual Price BoundOf(const Candidate& candidate) = 0;
};

// Returns the costs on the chip. Graph and target must live as long.
std::unique_ptr<CandidateCosts> CostsOfCandidates(const KernelGraph& graph,
                                                  const target::Target& target);

// A copy of an array from one layout to another.
absl::StatusOr<Price> PriceOfCopy(const hlo::Shape& from, const hlo::Shape& to,
                                  kernels::KernelLibrary& kernels);

// The demanding part of a kernel, its hero: an update, a reduction or a product and, of several,
// the most demanding; kExpression if there is none.
Part HeroOf(const KernelGraph& graph, std::span<const int> members);

// A candidate as a fusion that calls `computation`, with `inputs` as operands.
struct Fused {
  hlo::Computation* computation = nullptr;
  std::vector<int> inputs;
  hlo::Shape shape;            // of an array, or a tuple of the results
  const char* kind = nullptr;  // of the fusion
};
// Adds the computation to `module`, with copies of members and of what is free.
Fused Fuse(hlo::Module& module, const KernelGraph& graph, const Candidate& candidate,
           const std::string& name);
// Whether the candidate is one instruction as it is: nothing is fused to it.
bool IsLone(const KernelGraph& graph, const Candidate& candidate);

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_CANDIDATE_H_

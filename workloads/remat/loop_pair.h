// A forward loop and the backward loop that goes over what it has left.
//
// A scan leaves what its backward pass needs in stacks: arrays with a slot per iteration, into
// which the body writes. The backward loop reads a slot of each per iteration, mostly the last one
// first. So each iteration of the backward loop belongs to one of the forward loop: the one that
// has written what it reads. In numbers of iterations that is forward = scale * backward + offset.
#ifndef TPUSIM_WORKLOADS_REMAT_LOOP_PAIR_H_
#define TPUSIM_WORKLOADS_REMAT_LOOP_PAIR_H_

#include <cstdint>
#include <optional>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::remat {

// An integer that an iteration of a loop has: scale * (number of the iteration) + offset.
struct Affine {
  int64_t scale = 0, offset = 0;
  bool operator==(const Affine&) const = default;
};
// nullopt: it is none, or not seen to be one. `trips` is how often the loop runs.
std::optional<Affine> AffineOf(hlo::Instruction* value, const hlo::Instruction& loop,
                               int64_t trips);

// A slot along the first dimension of an array.
struct Slot {
  hlo::Instruction* array = nullptr;
  hlo::Instruction* index = nullptr;
};
// What a slice without its first dimension reads; nullopt: it is something else.
std::optional<Slot> SlotRead(hlo::Instruction* value);

// An element of a loop's carry into which the body writes a slot per iteration, each of them once.
struct Stack {
  int64_t element = -1;
  hlo::Instruction* index = nullptr;
  hlo::Instruction* written = nullptr;  // without the first dimension
};
std::optional<Stack> StackOf(const hlo::Instruction& loop, int64_t element);

struct LoopPair {
  hlo::Instruction* forward = nullptr;
  hlo::Instruction* backward = nullptr;
  int64_t forward_trips = 0, backward_trips = 0;
  Affine iteration;  // of the forward loop, by those of the backward loop
  // By which the forward body writes slots, and by which the backward body reads the same ones.
  hlo::Instruction* written_at = nullptr;
  hlo::Instruction* read_at = nullptr;
  int64_t slots = 0;

  // Whether they are equal, in an iteration of the backward loop and the one that it belongs to.
  bool Same(const Affine& in_backward, const Affine& in_forward) const;
  // The stack of the forward loop that an array in the backward body is.
  std::optional<Stack> StackIn(hlo::Instruction* array) const;
};

// nullopt: the second does not read what the first has left. Both are in one computation.
std::optional<LoopPair> PairOf(hlo::Instruction* forward, hlo::Instruction* backward);

}  // namespace tpusim::remat

#endif  // TPUSIM_WORKLOADS_REMAT_LOOP_PAIR_H_

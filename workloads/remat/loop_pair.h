// Pairs a forward loop with the backward loop that reads what it stacks.
//
// A scan leaves what its backward pass needs in stacks: arrays with a slot per iteration, into
// which the body writes. The backward loop reads a slot of each per iteration, mostly the last one
// first. So each iteration of the backward loop belongs to one of the forward loop: the one that
// has written what it reads. In numbers of iterations that is forward = scale * backward + offset.
#ifndef TPUSIM_WORKLOADS_REMAT_LOOP_PAIR_H_
#define TPUSIM_WORKLOADS_REMAT_LOOP_PAIR_H_

#include <cstdint>
#include <optional>

#include "workloads/hlo/analysis/loops.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::remat {

// A slot along the first dimension of an array that an iteration reads.
struct ReadSlot {
  hlo::Instruction* array = nullptr;
  hlo::Instruction* index = nullptr;
};
// The slot that a value is, without the first dimension; nullopt: the value is something else.
std::optional<ReadSlot> ReadSlotOf(hlo::Instruction* value);

// A slot along the first dimension of an element of the carry that each iteration writes.
struct WrittenSlot {
  hlo::Instruction* index = nullptr;
  hlo::Instruction* value = nullptr;  // without the first dimension
};
std::optional<WrittenSlot> WrittenSlotOf(const hlo::Instruction& loop, int64_t element);

struct LoopPair {
  hlo::Instruction* forward = nullptr;
  hlo::Instruction* backward = nullptr;
  hlo::Affine iteration;  // of the forward loop, by those of the backward loop
  // The indices of the slots that the forward body writes and the backward body reads again.
  hlo::Instruction* written_at = nullptr;
  hlo::Instruction* read_at = nullptr;
  int64_t slots = 0;

  // Whether the integers are equal in an iteration of the backward loop and the one that it belongs
  // to.
  bool Same(const hlo::Affine& in_backward, const hlo::Affine& in_forward) const;
  // The slot that the forward loop writes into an array that the backward body reads.
  std::optional<WrittenSlot> StackIn(hlo::Instruction* array) const;
};

// Whether the index is within the array in all iterations, so that XLA moves none to where it ends.
bool StaysIn(const hlo::Affine& index, const hlo::LoopFacts& loop, const ReadSlot& slot);

// nullopt: the second loop does not read what the first has left. Both are in one computation.
std::optional<LoopPair> PairOf(hlo::Instruction* forward, hlo::Instruction* backward,
                               hlo::ModuleLoops& loops);

}  // namespace tpusim::remat

#endif  // TPUSIM_WORKLOADS_REMAT_LOOP_PAIR_H_

// Values that the program has named for rematerialisation (jax.ad_checkpoint.checkpoint_name).
//
// JAX lowers a name to nothing. An export of tpusim keeps it: a named value goes through an
// instruction that gives it on as it is, with the name as a frontend attribute: a float rounded to
// the precision of its own type, anything else an optimization barrier of its own. Any XLA compiles
// that; here it goes before shardings are propagated, so that a program with names is the program
// without. Until then the value itself has its names, as another attribute.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_CHECKPOINT_NAMES_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_CHECKPOINT_NAMES_H_

#include <optional>
#include <string>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The name that an instruction gives to its operand; nullopt: it gives none, or is more than that.
std::optional<std::string> CheckpointName(const Instruction& instruction);

// Takes the name off: what is left is what the instruction does.
void RemoveCheckpointName(Instruction* named);

// The value itself gets the name.
void AddName(Instruction* value, const std::string& name);

// Users of a named value take what was named; that has its names from now on.
void DropCheckpointNames(Module& module);

// To what takes the place of a value.
void MoveNames(const Instruction* from, Instruction* to);

// The names that a value has, in the order in which it got them, which are taken off.
std::vector<std::string> TakeNames(Instruction* value);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_CHECKPOINT_NAMES_H_

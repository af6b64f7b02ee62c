// Reads and removes names of values for rematerialisation (jax.ad_checkpoint.checkpoint_name).
//
// JAX lowers a name to nothing. An export of tpusim keeps it as a frontend attribute of an
// instruction that leaves the value as it is: for a float a rounding to the precision of its own
// type, for anything else an optimization barrier of its own. Any XLA compiles that. Here the
// instruction is removed before shardings are propagated, so that a program with names is the
// program without; the value itself keeps its names, in another attribute.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_CHECKPOINT_NAMES_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_CHECKPOINT_NAMES_H_

#include <optional>
#include <string>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// The name that an instruction gives to its operand; nullopt: none, or the instruction does more.
std::optional<std::string> CheckpointName(const Instruction& instruction);

// Removes the name from the instruction that gives it.
void RemoveCheckpointName(Instruction* named);

// Adds a name to the names of a value.
void AddName(Instruction* value, const std::string& name);

// Removes the instructions that give names; the values that they name have the names from now on.
void DropCheckpointNames(Module& module);

// Copies the names of a value to the one that replaces it.
void MoveNames(const Instruction* from, Instruction* to);

// Removes the names of a value and returns them, in the order in which they were added.
std::vector<std::string> TakeNames(Instruction* value);

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_CHECKPOINT_NAMES_H_

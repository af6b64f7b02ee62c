// Prices the operations of a kernel's body on vectors.
//
// An operation names a row of the chip's instructions (configs/instructions.h), which is the price
// of one register; operations.cc has the table of names. Loads, stores and what only names or
// places a value cost nothing: they go with what they feed. An operation that is not in the table
// has no rule, and the kernel has no price.
#ifndef TPUSIM_WORKLOADS_MOSAIC_OPERATIONS_H_
#define TPUSIM_WORKLOADS_MOSAIC_OPERATIONS_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "configs/chip.h"
#include "workloads/mosaic/amounts.h"
#include "workloads/mosaic/module.h"
#include "workloads/mosaic/repeats.h"

namespace tpusim::mosaic {

enum class Rule {
  kNone,
  kFree,            // costs nothing on vectors
  kElementwise,     // one FLOP per element of the result
  kTranscendental,  // one transcendental per element of the result
  kReduction,       // one FLOP per element that goes in
  kMove,            // no FLOP
  kProduct,
};
Rule RuleOf(std::string_view name);

// Returns whether an operation leaves its references what they were before.
bool OnlyReads(std::string_view name);
// Returns whether the result names a part of the first operand, a reference.
bool IsView(std::string_view name);
// Returns whether the operation is the last of its block, which hands over what the block gives.
bool IsTerminator(std::string_view name);

int64_t ElementsOf(const Type& type);
// Returns the bytes of an array or of what a reference names; an element has at least one.
int64_t BytesOf(const Type& type);
// Returns the registers of 32-bit elements that a vector is computed in.
double RegistersOf(const Type& vector, const configs::VpuParams& vpu);
// Returns where a vector comes from that another shape was given.
const Value* Unshaped(const Value* vector);

// Returns what a product costs; nullopt: operands that the arrays do not take.
std::optional<Stage> ProductOf(const Operation& matmul);
// Returns what an operation costs that is no product; nullopt: instructions have no row for it.
// `repeats` knows the operation and those that made its operands.
std::optional<Stage> StageOf(const Operation& operation, const configs::ChipParams& chip,
                             const Repeats& repeats);

}  // namespace tpusim::mosaic

#endif  // TPUSIM_WORKLOADS_MOSAIC_OPERATIONS_H_

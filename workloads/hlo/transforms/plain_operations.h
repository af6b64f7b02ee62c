// Elementwise arithmetic, broadcasts and sums, written in the place of another instruction.
#ifndef TPUSIM_WORKLOADS_HLO_TRANSFORMS_PLAIN_OPERATIONS_H_
#define TPUSIM_WORKLOADS_HLO_TRANSFORMS_PLAIN_OPERATIONS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "workloads/hlo/ir/ir.h"

namespace tpusim::hlo {

// Adds the computation of one operation on two scalars: what a reduce, a scatter or a collective
// applies.
Computation* AddReducer(Module& module, Opcode opcode, PrimitiveType type, std::string_view name);

// Adds instructions to the computation of one that they replace; they have its source location.
// Operands of one call have equal dimensions.
class PlainOperations {
 public:
  explicit PlainOperations(Instruction& replaced) : replaced_(replaced) {}

  // An operation whose result has the shape of its first operand.
  Instruction* Apply(Opcode opcode, std::vector<Instruction*> operands);
  // Returns the value with elements of another type: convert, bitcast-convert.
  Instruction* Convert(Opcode opcode, Instruction* value, PrimitiveType type);
  // An array whose elements are all `value`.
  Instruction* Fill(PrimitiveType type, const std::vector<int64_t>& dims, double value);
  // An array in which the dimensions of `value` are those of `at`.
  Instruction* Broadcast(Instruction* value, const std::vector<int64_t>& dims,
                         const std::vector<int64_t>& at);
  // An array that counts 0, 1, 2, ... along one dimension.
  Instruction* Iota(PrimitiveType type, const std::vector<int64_t>& dims, int64_t along);
  // Combines all elements along `dims` by `opcode`, starting from 0.
  Instruction* Reduce(Opcode opcode, Instruction* value, const std::vector<int64_t>& dims);
  // The sum over all dimensions but `kept`.
  Instruction* SumExcept(Instruction* value, int64_t kept);

  // Puts `value` in the place of the instruction, with its sharding and control edges.
  void Replace(Instruction* value);
  // Puts a tuple of `values` in the place of the instruction; each has its part of the sharding, of
  // which one that is no tuple holds for all.
  void ReplaceByTuple(const std::vector<Instruction*>& values);

 private:
  Computation& computation() { return *replaced_.parent(); }
  Instruction* Add(Opcode opcode, Shape shape, std::vector<Instruction*> operands);

  Instruction& replaced_;
};

}  // namespace tpusim::hlo

#endif  // TPUSIM_WORKLOADS_HLO_TRANSFORMS_PLAIN_OPERATIONS_H_

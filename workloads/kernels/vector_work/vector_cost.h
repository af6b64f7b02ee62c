// The demand of one HLO instruction on the vector slots and the scalar core.
//
// One function per family of operations, each in a file of its own; all give
// slot operations of a whole instruction, as whole-register operations. Kernels
// add up their members' work and divide it by the steps of their grid.
//
// The room answers what an operation asks of the vector units; `VectorWorkOf` is its entry point.
// The price of one register is a row of the chip's instructions (configs/instructions.h), the
// number of registers and what has to cross lanes follow from shapes and layouts.
#ifndef TPUSIM_WORKLOADS_KERNELS_VECTOR_WORK_VECTOR_COST_H_
#define TPUSIM_WORKLOADS_KERNELS_VECTOR_WORK_VECTOR_COST_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/cross_lanes.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// Slot operations of a whole instruction (not per register). `load` and `store`
// count registers that go through VMEM inside the kernel, beside its operands
// and results, which the kernel counts itself.
struct VectorWork {
  double valu = 0, eup = 0, xlu = 0, load = 0, store = 0;
  double scalar = 0;   // cycles of the scalar core
  double latency = 0;  // cycles of dependent chains that nothing hides
  VectorWork& operator+=(const VectorWork& other);
  VectorWork operator*(double times) const;
};

// The work of one of `steps` equal grid steps; a step over part of a block counts as that part.
isa::Block BlockOf(const VectorWork& work, double steps);

// Error (no rule): an instruction that has no vector implementation here, named
// with its source line.
absl::StatusOr<VectorWork> VectorWorkOf(const hlo::Instruction& instruction,
                                        const target::Target& target);

// A copy whose result has its dimensions in another order than its operand.
bool IsRelayout(const hlo::Instruction& instruction);
// Do elements along dimension `d`, which are cut out, put in or turned round, lose their place
// modulo the lanes?
bool ShiftsAlong(const hlo::Instruction& instruction, int64_t d, int64_t lanes);
// A relayout or transpose that puts another dimension along the lanes.
bool TurnsLanes(const hlo::Instruction& instruction);

// Registers of narrow elements as they lie in memory over those that they are computed in.
double PackedShare(const hlo::Shape& shape);
// Packing of narrow elements on their way out: each operation puts two registers into one, down to
// as many as they lie in. Nothing for 32-bit types. (Unpacking, UnpackWork, takes one operation for
// every register of 32-bit elements.)
double RepackWork(const hlo::Shape& shape, const target::Target& target);

// ---- Families --------------------------------------------------------------

// Operations per register of results of an elementwise operation, or nullopt.
std::optional<VectorWork> ElementwiseCost(const hlo::Instruction& instruction,
                                          const target::Target& target);
// Returns its cost in the kernel where it takes least: converts that the kernel's loads and stores
// do are free, and a cosine is beside the sine of its angle.
std::optional<VectorWork> LeastElementwiseCost(const hlo::Instruction& instruction,
                                               const target::Target& target);
// Per register of one call of a scalar computation: a reducer, a comparator.
absl::StatusOr<VectorWork> CallCost(const hlo::Computation& computation, const target::Target&);

// Returns what is left of one array when `dims` are reduced and every register has been combined
// with the ones that it lines up with.
target::CrossLaneWork CrossLaneWorkOf(const hlo::Shape& input, const std::vector<int64_t>& dims,
                                     const target::Target& target);
absl::StatusOr<VectorWork> ReduceWork(const hlo::Instruction& reduce, const target::Target&);
absl::StatusOr<VectorWork> ReduceWindowWork(const hlo::Instruction& window, const target::Target&);
absl::StatusOr<VectorWork> SelectAndScatterWork(const hlo::Instruction& i, const target::Target&);
// Copies, slices, pads, transposes and what else only moves elements.
VectorWork MoveWork(const hlo::Instruction& move, const target::Target& target);
// Different registers among those of a broadcast's result.
double SpreadRegisters(const hlo::Instruction& broadcast, const target::Target& target);
// A product by multiplications and additions, where the arrays would idle.
VectorWork MultiplyAddWork(const hlo::Instruction& product, const target::Target& target);
VectorWork GatherWork(const hlo::Instruction& gather, const target::Target& target);
absl::StatusOr<VectorWork> ScatterWork(const hlo::Instruction& scatter, const target::Target&);
absl::StatusOr<VectorWork> SortWork(const hlo::Instruction& sort, const target::Target& target);
VectorWork TopKWork(const hlo::Instruction& top_k, int64_t k, const target::Target& target);
VectorWork RandomWork(const hlo::Instruction& generator, const target::Target& target);

// Rounds and passes of a bitonic sort.
//
// Compare-exchange rounds over n keys.
int64_t SortRounds(int64_t n);

// Returns how often n keys have to pass through VMEM that holds `in_vmem` of them.
int64_t StreamedPasses(int64_t n, int64_t in_vmem);

// Arithmetic on single elements: index arithmetic, learning rates, norms.
//
// Scalars are in registers or in SMEM, not in HBM, and the core computes with them where
// it controls its kernels: they need neither a launch nor a transfer.
//
// Work of the scalar core for one scalar instruction.
isa::Block ScalarBlock(const hlo::Instruction& instruction, const target::Target& target);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_VECTOR_WORK_VECTOR_COST_H_

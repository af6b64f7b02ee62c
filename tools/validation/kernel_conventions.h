// The TPU compiler's way of counting in its estimates, where it differs from the machine model.
//
// A kernel is built and tiled as any other. Then its windows are made to carry what
// the estimates charge (ChargeWindows), and a kernel without a product takes
//
//   steps * wait + max(bytes / rate, compute)                          SerialTime
//
// because in the estimates every step of it waits for its transfers and nothing hides
// the wait (a single step, with nothing to overlap, the sum). What they charge:
//
//   * a result of less than 4 bytes per element: 4 bytes per element for packing, beside
//     its bytes, and in VMEM as well
//   * a reduction: its largest operand once more, 4 bytes per element
//   * operands of loop fusions in VMEM: a share of what HBM operands cost
//   * what is padded: a window halfway between its size and the padded one
//   * copies: nothing for VMEM. One that puts another dimension along the lanes counts
//     4 bytes for every element, waits for each side that is not in VMEM, and takes
//     100 cycles per step whatever its size
//   * an operation without operands or transfers: nothing but compute
#ifndef TPUSIM_TOOLS_VALIDATION_KERNEL_CONVENTIONS_H_
#define TPUSIM_TOOLS_VALIDATION_KERNEL_CONVENTIONS_H_

#include <nlohmann/json.hpp>

#include "configs/chip.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::validation {

struct Conventions {
  double loop_step_cycles = 0;  // 0: the simulator's own bytes and times
  double loop_bytes_per_cycle = 0;
  double vmem_share = 0, cmem_share = 0;
};

// An operand or result of a row: ["bf16", [1024, 64], "1,0:T(8,128)(2,1)S(1)", "VMEM"].
struct Operand {
  hlo::Shape logical, physical;  // physical: major first
  int64_t minor = -1;            // the logical dimension along the lanes
  bool fast = false;             // VMEM, CMEM, SMEM: not HBM
  bool cmem = false;
};
Operand ParseOperand(const nlohmann::ordered_json& json);

bool IsNarrow(const hlo::Shape& shape);  // elements of less than 4 bytes

// A copy that puts another dimension along the lanes.
bool MovesLanes(const nlohmann::ordered_json& row);

// Does an operand of the row cost anything in the estimates?
bool Counts(const nlohmann::ordered_json& row, const Operand& input,
            const Conventions& conventions);

// Makes the windows of the row's kernel carry what the estimates charge.
void ChargeWindows(const hlo::Instruction& fusion, const nlohmann::ordered_json& row,
                   const Conventions& conventions, isa::Kernel& kernel);

// A product whose operands cost nothing: its transfers are those of its result.
bool OnlyWrites(const nlohmann::ordered_json& row, const Conventions& conventions);

// Returns whether SerialTime applies to a kernel: it has no product, or the epilogue of its product
// takes the maximum of a row (attention). In the estimates such kernels overlap nothing.
bool IsSerial(const nlohmann::ordered_json& row, const Conventions& conventions,
              const isa::Kernel& kernel);

// Cycles of such a kernel whose windows carry their charges.
double SerialTime(const configs::ChipParams& chip, const nlohmann::ordered_json& row,
                  const Conventions& conventions, const isa::Kernel& kernel);

}  // namespace tpusim::validation

#endif  // TPUSIM_TOOLS_VALIDATION_KERNEL_CONVENTIONS_H_

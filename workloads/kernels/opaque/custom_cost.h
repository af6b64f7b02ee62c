// The cost of one call of an opaque kernel.
//
// A custom call says nothing about its work. Four sources, first match wins: what the user stated,
// in the workload or as an option (written onto the instruction by SetCustomCosts), the body that a
// Pallas kernel carries (body_cost.h writes what it finds in the same way), the cost estimate that
// it carries in its backend_config, and nothing: then there is no rule. Only a call of the host
// costs the device nothing unless it is stated, and the report says so.
//
// The room answers what a call costs whose work is no HLO; `CustomCostOf` is its entry point. A cost
// has three forms: the amounts that workloads/mosaic adds up over a body, the message KernelCost
// that a call carries as text, and CustomCost, checked and with units, from which
// tiling/custom_kernel.cc makes the kernel.
#ifndef TPUSIM_WORKLOADS_KERNELS_OPAQUE_CUSTOM_COST_H_
#define TPUSIM_WORKLOADS_KERNELS_OPAQUE_CUSTOM_COST_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/record.h"
#include "configs/units.h"
#include "models/isa/program.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/kernel_cost.pb.h"
#include "workloads/target/target.h"
#include "workloads/workload.pb.h"

namespace tpusim::kernels {

// The pipeline of a kernel that is written as one (a Pallas kernel with a grid): a step per point
// of the grid.
struct CustomPipeline {
  struct BlockSpec {
    Bytes bytes{0};
    bool output = false;
    uint32_t moves_with = 0;  // axes of the grid, as bits
  };
  std::vector<int64_t> grid;
  std::vector<BlockSpec> blocks;
};

// Products [m,k] x [k,n], `count` of them in the whole call.
struct CustomProduct {
  int64_t m = 0, k = 0, n = 0;
  isa::NumberFormat format = isa::NumberFormat::kBf16;
  int64_t count = 0;
};

// A part of a kernel's body whose slots run side by side, of the whole call: stages run one after
// another, because the first result of one waits for all of the one before.
struct CustomStage {
  Flops flops{0};
  Flops transcendentals{0};
  Bytes spilled{0};  // stored to VMEM once and loaded once, as no registers hold it
  std::vector<CustomProduct> products = {};
  // Operations of the vector units, on a register each.
  double valu = 0, eup = 0, xlu = 0;
};

struct CustomCost {
  Flops flops{0};
  Flops transcendentals{0};
  Bytes bytes{0};   // read and written
  Bytes remote{0};  // sent to other devices, by each
  // Their FLOPs are part of `flops`. Without any, and without a pipeline, all of `flops` are
  // taken to be products that fill the arrays: nothing else is known.
  std::vector<CustomProduct> products = {};
  std::optional<CustomPipeline> pipeline = std::nullopt;
  // The sums above once more, if it is known what waits for what.
  std::vector<CustomStage> stages = {};
  // The share of the waits between stages that nothing overlaps.
  double exposed_share = 1;
  bool one_core = false;  // the cores of a device do not share it
  // The time that the call takes, if it is stated.
  std::optional<Picoseconds> time = std::nullopt;
  // Assumptions: sentences without their subject.
  std::vector<std::string> assumed = {};
};

// Returns what a body or a call says of a kernel, without its loops. Error: bad sizes, a format
// that the arrays do not know.
absl::StatusOr<CustomCost> CostOf(const tpusim::KernelCost& kernel);

// The cost that is stated of kernels of a name.
struct NamedCost {
  std::string name;  // of an instruction or of a Pallas kernel; may be a glob
  CustomCost cost;   // a time alone leaves what else is known as it is
};

// Returns the cost that a workload states. Error: its time is negative or longer than a day.
absl::StatusOr<NamedCost> NamedCostOf(const tpusim::StatedKernelCost& kernel);

// A loop inside a kernel, or an axis of its grid, whose count is not known.
struct OpenLoop {
  std::string name;    // "KERNEL/loop.0"
  std::string source;  // file:line
  std::string inside;  // the innermost open loop around it, or nothing
};

// A cost that may depend on the counts of loops.
struct OpenCost {
  CustomCost cost;
  // Why there is no cost, and what would give one: "its loop f/loop.0 depends on data;
  // state it with --trip-count f/loop.0=N". Empty: there is.
  std::string unpriced = "";
  // The loops without a count, outer ones first.
  std::vector<OpenLoop> open_loops = {};
};

// Returns the count of a loop inside a kernel; nullopt: unknown.
using KernelTrips = std::function<std::optional<int64_t>(const tpusim::KernelLoop& loop)>;

// Returns what a body says of a kernel, loops included. Without the count of all its loops
// the kernel is unpriced. Errors: as CostOf.
absl::StatusOr<OpenCost> OpenCostOf(const tpusim::KernelCost& kernel, const KernelTrips& trips);

// Returns the cost of a call. Error (no rule): none is known; the message says how to state one.
absl::StatusOr<CustomCost> CustomCostOf(const hlo::Instruction& custom_call);
// Writes a cost onto a call, in place of the one that it has.
void SetCustomCost(hlo::Instruction* custom_call, const CustomCost& cost);

// Returns what the arrays do in the call, in FLOPs of one bf16 pass.
Flops MatrixFlops(const CustomCost& cost, const target::Target& target);

// Returns whether Pallas made the kernel of this call, which then carries the body.
bool IsPallasCall(const hlo::Instruction& instruction);

// Returns whether `pattern`, a name or a glob, fits a custom call: the name of its instruction, of
// its kernel, of the function that its kernel is, or a last part of its scope.
bool IsNamed(const hlo::Instruction& custom_call, const std::string& pattern);

// Writes costs onto the custom calls that they name; the first match wins. Returns the calls
// that each of `costs` is written to.
std::vector<std::vector<std::string>> SetCustomCosts(hlo::Module& module,
                                                     const std::vector<NamedCost>& costs);

// Writes onto a call why it has no cost.
void SetUnpriced(hlo::Instruction* custom_call, const OpenCost& found);
// Returns whether a cost, or why there is none, has been written onto a call.
bool IsPriced(const hlo::Instruction& custom_call);
// Returns the time of a call of which nothing else has been stated yet.
std::optional<Picoseconds> TimeAlone(const hlo::Instruction& custom_call);

// Returns why there is no cost for the call; empty if there is one, or before SetCustomCosts and
// SetBodyCosts have looked for it.
std::string UnpricedReason(const hlo::Instruction& custom_call);

// Returns the loops because of which there is no cost for the call, if that is why.
std::vector<OpenLoop> OpenLoopsOf(const hlo::Instruction& custom_call);

// Returns the assumptions in costs of reachable calls, a record each.
std::vector<Record> CostAssumptions(const hlo::Module& module);

// Returns a record for every reachable call of the host that is taken to cost the device nothing.
std::vector<Record> FreeHostCallbacks(const hlo::Module& module);

// JAX's names for the factorizations of LAPACK's geqrf, orgqr and getrf on TPUs.
inline constexpr std::string_view kQrTarget = "Qr";
inline constexpr std::string_view kMakeQTarget = "ProductOfElementaryHouseholderReflectors";
inline constexpr std::string_view kLuTarget = "LuDecomposition";

// Returns whether a custom call finds the k largest of the last dimension.
bool IsTopKCall(const hlo::Instruction& instruction);
// Returns whether it is the first half of an approximate top-k: the best of every so many
// candidates.
bool IsPartialReduceCall(const hlo::Instruction& instruction);
// Returns whether it is QR or LU of matrices, the orthogonal matrix of Householder reflectors, or
// eigenvectors by Jacobi's method; not where a cost is stated, which counts then.
bool IsFactorizationCall(const hlo::Instruction& instruction);
// Returns whether it is one of these, whose cost follows from its shapes.
bool HasKernelOfItsOwn(const hlo::Instruction& custom_call);

// Opaque kernels whose time is stated: as it was measured on a chip.
//
// Alone on its chip such a kernel takes as long as is stated, from its launch to its last byte.
// What it reads and writes moves evenly meanwhile, so that transfers beside it find the HBM as busy
// as they would; one slot is busy all the time. What it is known to compute and to move says
// nothing of how long it takes then, and counts as far as the chip can do so much in the time. The
// rest is left out, and the report says so.
//
// Returns a kernel that takes the time of `cost`, or the least that a kernel of its bytes takes, if
// that is longer; `results` of its bytes are written.
isa::Kernel BuildTimedKernel(const CustomCost& cost, Bytes results, const std::string& name,
                             const target::Target& target);

// Returns a kernel that takes `time`, or the least that one of these bytes takes, if that is
// longer. With `products` the arrays are busy, else the vector units.
isa::Kernel BuildKernelOfTime(Picoseconds time, Bytes read, Bytes written, bool products,
                              const std::string& name, const target::Target& target);

// Cuts what calls of stated time compute and move to what the chip can do in the time.
void HoldToStatedTimes(hlo::Module& module, const target::Target& target);

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_OPAQUE_CUSTOM_COST_H_

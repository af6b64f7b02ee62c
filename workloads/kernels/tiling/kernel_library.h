// The kernels of one compilation, or of several for one chip, each structure searched once.
//
// A program repeats its layers, and the scheduler and the lowering ask for the same
// kernels. A kernel follows from what its instruction is: opcodes, shapes with layouts
// and memory spaces, attributes, the fused computation with its data flow, and which
// operands are one value. Names and places in the source play no part, so two
// instructions that agree in all the rest have the same kernel but for the names of
// its windows. The library writes what counts into a string, the canonical form, and
// finds kernels by the whole of it: no two structures are ever taken for each other. For an
// instruction that is asked for again it is not written again until something in it changes.
#ifndef TPUSIM_WORKLOADS_KERNELS_TILING_KERNEL_LIBRARY_H_
#define TPUSIM_WORKLOADS_KERNELS_TILING_KERNEL_LIBRARY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "configs/chip.h"
#include "configs/units.h"
#include "models/isa/program.h"
#include "models/timing/kernel_timing.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/target/target.h"

namespace tpusim::kernels {

// Alone on its chip.
struct KernelCost {
  Picoseconds launch{0};  // what its first DMA waits for
  Picoseconds time{0};    // with that
  timing::KernelTraffic traffic;
  Bytes windows{0};  // VMEM that they take

  Bytes moved() const { return traffic.read + traffic.written; }  // in HBM
};
KernelCost CostOf(const configs::ChipParams& chip, const isa::Kernel& kernel);

// A kernel whose arrays could be in another memory: what it would cost.
//
// What one array would save is asked of the grid as it is; what the kernel costs with some of
// them there, of a kernel that is built for that.
class PlaceableKernel {
 public:
  // Returns the cost where some arrays are in the other memory: operands first, then result leaves.
  using Cost = std::function<KernelCost(const std::vector<bool>& there)>;

  // `of_this_grid` is asked here, `built` by With.
  PlaceableKernel(size_t operands, size_t results, const Cost& of_this_grid, Cost built);

  // Remembered.
  const KernelCost& With(const std::vector<bool>& there);

  size_t operands() const { return operands_; }
  size_t arrays() const { return operands_ + results_; }
  // Returns what an array saves: of what all save together the share of its bytes, or what it
  // saves alone if that is more.
  Picoseconds SavedBy(size_t array) const { return saved_[array]; }
  // Returns the bytes of an array that are read or written in HBM.
  Bytes MovedOf(size_t array) const { return moved_[array]; }

 private:
  const size_t operands_, results_;
  const Cost built_;
  std::map<std::vector<bool>, KernelCost> costs_;
  std::vector<Picoseconds> saved_;
  std::vector<Bytes> moved_;
};

// Returns all that BuildKernel reads of a fusion or lone instruction, equal for two of them
// exactly if all of that is equal.
std::string CanonicalForm(const hlo::Instruction& instruction);

// A kernel, and what it costs.
struct TimedKernel : KernelCost {
  isa::Kernel kernel;
};

class KernelLibrary {
 public:
  // The target must live as long.
  explicit KernelLibrary(const target::Target& target) : target_(target) {}

  // Calls BuildKernel, with the names of `instruction` and its operands. Errors are not
  // remembered: they name the instruction.
  absl::StatusOr<TimedKernel> Build(const hlo::Instruction& instruction);
  absl::StatusOr<KernelCost> CostOf(const hlo::Instruction& instruction);
  // Returns a kernel with arrays elsewhere, which the library keeps.
  absl::StatusOr<PlaceableKernel*> PlaceableOf(const hlo::Instruction& instruction, int64_t space);

  // Kernels that were searched for, and questions that the library was asked.
  int64_t searches() const { return static_cast<int64_t>(entries_.size()); }
  int64_t requests() const { return requests_; }

 private:
  struct Entry {
    TimedKernel timed;
    // Per window the operand whose name it has; -1: that of the instruction itself.
    std::vector<int64_t> operand_of_window;
    std::map<int64_t, std::unique_ptr<PlaceableKernel>> placeable;  // by memory space, once asked
  };
  // The form that an instruction had after this change of modules.
  struct Known {
    int64_t change = 0;
    Entry* entry = nullptr;
  };
  absl::StatusOr<Entry*> Find(const hlo::Instruction& instruction);
  absl::StatusOr<Entry*> FindByForm(const hlo::Instruction& instruction);

  const target::Target& target_;
  std::unordered_map<std::string, Entry> entries_;  // looked up, never iterated
  // Looked up, never iterated. What lies where another was has changed since.
  absl::flat_hash_map<const hlo::Instruction*, Known> known_;
  int64_t requests_ = 0;
};

}  // namespace tpusim::kernels

#endif  // TPUSIM_WORKLOADS_KERNELS_TILING_KERNEL_LIBRARY_H_

#include "workloads/search/compiled_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "workloads/cost/collective_decisions.h"
#include "workloads/hlo/analysis/execution.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/view/kernel_view.h"
#include "workloads/kernels/view/product.h"
#include "workloads/search/matrix_time.h"
#include "workloads/target/async_form.h"

namespace tpusim::search {
namespace {

using hlo::Computation;
using hlo::Execution;
using hlo::Instruction;

// In seconds.
struct Least {
  double serial = 0;
  // Seconds of collectives that use the same links: those of one kind in the same groups.
  std::map<std::string, double> links;

  void Add(const Least& other, double times) {
    serial += times * other.serial;
    for (const auto& [which, seconds] : other.links) links[which] += times * seconds;
  }
  double Longest() const {
    double longest = serial;
    for (const auto& [which, seconds] : links) longest = std::max(longest, seconds);
    return longest;
  }
};

// The stage that the passes have reached.
enum class Known { kOperations, kKernels };

class Walk {
 public:
  Walk(const target::Target& target, cost::ChipCostModel& costs, Known known)
      : target_(target),
        costs_(costs),
        known_(known),
        room_(target.FastMemory().usable(target.chip())) {}

  absl::StatusOr<Least> Of(const Computation& computation) {
    const auto found = found_.find(&computation);
    if (found != found_.end()) return found->second;
    Least least;
    for (const Instruction* i : computation.instructions()) {
      ASSIGN_OR_RETURN(const Execution execution, hlo::ExecutionOf(*i));
      switch (execution) {
        case Execution::kKernel:
          least.serial += known_ == Known::kKernels ? OfKernel(*i) : OfProductIn(*i);
          break;
        case Execution::kCollective: {
          ASSIGN_OR_RETURN(const cost::CollectiveDecisions::KeyedDecision* entry,
                           costs_.collectives().Find(*i));
          const double on_links = OnLinks(*entry);
          if (known_ == Known::kKernels) {
            least.serial += ToSeconds(collectives::UseOf(*entry->decision).latency) + on_links;
          } else if (!target::MayBecomeAsync(*i, target_)) {
            least.serial += on_links;
          }
          least.links[LinksOf(*i)] += on_links;
          break;
        }
        case Execution::kStart: {
          ASSIGN_OR_RETURN(const cost::CollectiveDecisions::KeyedDecision* entry,
                           costs_.collectives().Find(*i));
          least.links[LinksOf(*i)] += OnLinks(*entry);
          break;
        }
        case Execution::kLoop: {
          ASSIGN_OR_RETURN(const int64_t trips, costs_.TripsOf(*i));
          for (const Computation* called : i->called()) {
            ASSIGN_OR_RETURN(const Least body, Of(*called));
            least.Add(body, static_cast<double>(trips));
          }
          break;
        }
        case Execution::kCall:
          for (const Computation* called : i->called()) {
            ASSIGN_OR_RETURN(const Least body, Of(*called));
            least.Add(body, 1);
          }
          break;
        case Execution::kBranch:  // any of them, or none of what they have in common
        case Execution::kNothing:
        case Execution::kScalar:
        case Execution::kCopyStart:
        case Execution::kDone:
        case Execution::kTransfer:
          break;
      }
    }
    return found_[&computation] = least;
  }

 private:
  static std::string LinksOf(const Instruction& collective) {
    return fmt::format("{} {}", hlo::OpcodeName(collective.opcode()),
                       cost::GroupsKeyOf(hlo::WrappedBy(collective)));
  }

  // At the nominal rate of the links, whatever memory its arrays lie in.
  static double OnLinks(const cost::CollectiveDecisions::KeyedDecision& entry) {
    return ToSeconds(collectives::InfoOf(*entry.decision).bound);
  }

  double OfProductIn(const Instruction& operation) const {
    const Instruction* product = kernels::ProductIn(operation);
    return product != nullptr ? MatrixSeconds(*product, target_) : 0;
  }

  // Arrays that are too large for VMEM stay in HBM, whatever tiles the kernel has; of some it
  // needs a part. Kernels of products take arrays as matrices: of several dimensions in the lanes
  // none is padded by itself.
  double OfKernel(const Instruction& kernel) const {
    const kernels::KernelView view = kernels::ViewKernel(kernel, target_);
    const Instruction* product = kernels::ProductIn(kernel);
    Bytes moved(0);
    const auto add = [&](const hlo::Shape& shape, Bytes padded) {
      if (!shape.IsArray() || shape.ByteSize() <= room_) return;
      moved += product != nullptr ? std::min(padded, shape.ByteSize()) : padded;
    };
    for (const kernels::KernelInput& input : view.inputs) {
      add(input.value->shape(), kernels::BytesOf(input, target_));
    }
    for (const kernels::KernelOutput& output : view.outputs) {
      add(output.written, kernels::BytesOf(output, target_));
    }
    const double memory =
        static_cast<double>(moved.value()) / target_.chip().hbm.bytes_per_second.value();
    return std::max(memory, OfProductIn(kernel));
  }

  const target::Target& target_;
  cost::ChipCostModel& costs_;
  const Known known_;
  const Bytes room_;
  std::map<const Computation*, Least> found_;
};

absl::StatusOr<Picoseconds> Bound(const hlo::Module& module, const target::Target& target,
                                  cost::ChipCostModel& costs, Known known) {
  ASSIGN_OR_RETURN(const Least least, Walk(target, costs, known).Of(*module.entry()));
  return Picoseconds(static_cast<int64_t>(std::floor(least.Longest() * 1e12)));
}

}  // namespace

absl::StatusOr<Picoseconds> CompiledBound(const hlo::Module& module, const target::Target& target,
                                          cost::ChipCostModel& costs) {
  return Bound(module, target, costs, Known::kKernels);
}

absl::StatusOr<Picoseconds> SimplifiedBound(const hlo::Module& module, const target::Target& target,
                                            cost::ChipCostModel& costs) {
  return Bound(module, target, costs, Known::kOperations);
}

}  // namespace tpusim::search

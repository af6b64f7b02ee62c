#include "tools/tpusim/pipeline/unused_overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "configs/chip_schema.h"
#include "configs/memory.h"
#include "configs/status_macros.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/kernels/opaque/custom_cost.h"
#include "workloads/target/target.h"

namespace tpusim::tools {
namespace {

using configs::MachineWork;
using enum configs::MachineWork;

struct Format {
  isa::NumberFormat format;
  MachineWork products;
};
constexpr Format kFormats[] = {
    {isa::NumberFormat::kBf16, kBf16Products},
    {isa::NumberFormat::kF32, kF32Products},
    {isa::NumberFormat::kF32High, kF32HighProducts},
    {isa::NumberFormat::kF32Highest, kF32HighestProducts},
    {isa::NumberFormat::kInt8, kInt8Products},
    {isa::NumberFormat::kInt4, kInt4Products},
    {isa::NumberFormat::kFp8, kFp8Products},
    {isa::NumberFormat::kInt32, kInt32Products},
};

struct WorkOfOpcode {
  hlo::Opcode opcode;
  MachineWork work;
};
constexpr WorkOfOpcode kOpcodes[] = {
    {hlo::Opcode::kAllGather, kAllGathers}, {hlo::Opcode::kAllGatherStart, kAllGathers},
    {hlo::Opcode::kAllReduce, kAllReduces}, {hlo::Opcode::kReduceScatter, kReduceScatters},
    {hlo::Opcode::kGather, kIndexedSlices}, {hlo::Opcode::kScatter, kIndexedSlices},
};

constexpr std::string_view kNoSuchFormat = "the program has no matrix product of that format";
constexpr std::string_view kNoSuchCollective = "the program has no such collective";

// Says what a program without the work lacks; {0} is the slice, {1} the memory that the
// parameter is of.
struct Absence {
  MachineWork work;
  std::string_view reason;
};
constexpr Absence kAbsences[] = {
    {kProducts, "the program has no matrix product"},
    {kBf16Products, kNoSuchFormat},
    {kF32Products, kNoSuchFormat},
    {kF32HighProducts, kNoSuchFormat},
    {kF32HighestProducts, kNoSuchFormat},
    {kInt8Products, kNoSuchFormat},
    {kInt4Products, kNoSuchFormat},
    {kFp8Products, kNoSuchFormat},
    {kInt32Products, kNoSuchFormat},
    {kTranscendentals, "the program has no transcendental function"},
    {kCrossLaneMoves, "the program moves nothing across lanes"},
    {kKeptArrays, "of no kernel it is known which arrays it keeps"},
    {kArraysThere, "no array would live in {1}"},
    {kTransfersThere, "nothing is in {1}"},
    {kIndexedSlices, "the program has no gather or scatter"},
    {kAllGathers, kNoSuchCollective},
    {kAllReduces, kNoSuchCollective},
    {kReduceScatters, kNoSuchCollective},
    {kSparseCores, "the SparseCores run nothing"},
    {kTransfers, "the program sends nothing to another device"},
    {kTransfersWithinChip, "no device sends anything to another of its chip"},
    {kReduceAdds, "nothing is added up on arrival"},
    {kWrappedAxes, "no axis of {0} wraps around"},
    {kUnwrappedAxes, "no axis of {0} is a line of three chips or more"},
    {kPairs, "no axis of {0} has two chips"},
    {kPcie, "the program moves nothing to or from the host or another slice"},
    {kSlices, "there is only one slice"},
    {kDcn, "the program sends nothing from slice to slice"},
};

// The kinds of work that a program has for the machine.
struct Works {
  std::set<MachineWork> any;
  configs::PerMemory<bool> arrays, transfers;

  // `of` is the memory that the parameter is of, if it is of one.
  bool Have(MachineWork work, const configs::Memory* of) const {
    if (work == kArraysThere) return arrays.In(of->space);
    if (work == kTransfersThere) return transfers.In(of->space);
    return any.contains(work);
  }
};

// Whether its body is known and may have arrays that registers, were there fewer, would not hold.
bool KeepsArrays(const hlo::Instruction& call) {
  const absl::StatusOr<kernels::CustomCost> cost = kernels::CustomCostOf(call);
  return cost.ok() && !cost->stages.empty();
}

// Adds what instructions ask of the machine.
class Walker {
 public:
  Walker(const isa::PodProgram& program, Works& works)
      : program_(program), works_(works.any), transfers_(works.transfers) {}

  // Visits a body, which several programs may share, once.
  void Visit(const isa::SharedBody& body) {
    if (body == nullptr || !seen_.insert(body.get()).second) return;
    for (const isa::Instruction& instruction : *body) std::visit(*this, instruction.kind);
  }

  void operator()(const isa::Block& block) {
    AddIf(block.mxu.m > 0, kProducts);
    for (const Format& f : kFormats) {
      AddIf(block.mxu.m > 0 && block.mxu.format == f.format, f.products);
    }
    AddIf(block.eup > 0, kTranscendentals);
    AddIf(block.xlu > 0, kCrossLaneMoves);
  }
  void operator()(const isa::Kernel& kernel) {
    (*this)(kernel.block);
    for (const isa::Window& w : kernel.windows) LookAt(w.space);
  }
  void operator()(const isa::Dma& dma) {
    LookAt(dma.from);
    LookAt(dma.to);
  }
  void operator()(const isa::Rdma& rdma) {
    works_.insert(kTransfers);
    AddIf(rdma.reduce.has_value(), kReduceAdds);
    const isa::Route& route = program_.routes[rdma.route];
    for (size_t device = 0; device < route.from.size(); ++device) {
      const isa::RouteEnd& end = route.from[device];
      if (end.peer < 0 || end.peer == static_cast<int64_t>(device)) continue;
      if (end.dcn) {
        works_.insert({kDcn, kPcie});
      } else {
        AddIf(end.links.empty(), kTransfersWithinChip);
      }
    }
  }
  void operator()(const isa::HostDma&) { works_.insert(kPcie); }
  void operator()(const isa::Loop& loop) { Visit(loop.body); }
  void operator()(const isa::Call& call) { Visit(call.body); }
  void operator()(const isa::Branch& branch) {
    for (const isa::SharedBody& body : branch.bodies) Visit(body);
  }
  void operator()(const isa::Start& start) {
    AddIf(start.stream.kind == isa::StreamKind::kSparseCore, kSparseCores);
    Visit(start.body);
  }
  template <typename Other>
  void operator()(const Other&) {}

 private:
  void AddIf(bool asked, MachineWork work) {
    if (asked) works_.insert(work);
  }
  void LookAt(isa::MemorySpace space) { transfers_.In(space) = true; }

  const isa::PodProgram& program_;
  std::set<MachineWork>& works_;
  configs::PerMemory<bool>& transfers_;
  std::set<const isa::Body*> seen_;  // looked up, never iterated
};

Works WorksOf(const configs::Config& config, const isa::PodProgram& program,
              const hlo::Module& module) {
  Works found;
  std::set<MachineWork>& works = found.any;
  int64_t kernels = 0;  // of the module, fused ones counted as their parts
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) {
      kernels += hlo::MovesThroughWindows(i->opcode()) ? 1 : 0;
      if (i->opcode() == hlo::Opcode::kCustomCall && KeepsArrays(*i)) works.insert(kKeptArrays);
      for (const WorkOfOpcode& row : kOpcodes) {
        if (row.opcode == i->opcode()) works.insert(row.work);
      }
    }
  }
  // Arrays would live in a larger memory of their own, or else in VMEM.
  for (const configs::Memory& memory : configs::kMemories) {
    found.arrays.In(memory.space) = kernels > 1 && memory.on_chip && memory.planned;
  }
  if (kernels > 1) found.arrays.In(target::Target(config).FastMemory().space) = true;
  if (config.topology.slices() > 1) works.insert(kSlices);
  for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
    if (config.topology.shape()[axis] == 1) continue;
    const configs::AxisLinks links = config.topology.LinksAlong(axis);
    works.insert(links == configs::AxisLinks::kRing   ? kWrappedAxes
                 : links == configs::AxisLinks::kPair ? kPairs
                                                      : kUnwrappedAxes);
  }
  Walker walker(program, found);
  for (const isa::SharedBody& body : program.programs) walker.Visit(body);
  return found;
}

}  // namespace

std::vector<std::string> UnusedOverrides(const configs::Config& config,
                                         const isa::PodProgram& program,
                                         const hlo::Module& module) {
  if (config.overrides.empty()) return {};
  const Works works = WorksOf(config, program, module);
  std::vector<std::string> warnings;
  for (const configs::AppliedOverride& override : config.overrides) {
    const configs::Parameter* parameter = configs::FindParameter(override.path);
    TPUSIM_CHECK(parameter != nullptr, override.path);
    const configs::Memory* memory = configs::MemoryOfParameter(override.path);
    const auto absent = std::ranges::find_if(
        parameter->read_by, [&](MachineWork work) { return !works.Have(work, memory); });
    if (absent == parameter->read_by.end()) continue;
    const auto* absence = std::ranges::find(kAbsences, *absent, &Absence::work);
    TPUSIM_CHECK(absence != std::end(kAbsences), "work without a reason");
    warnings.push_back(fmt::format("--set {} has no effect: {}", override.path,
                                   fmt::format(fmt::runtime(absence->reason), config.name,
                                               memory == nullptr ? "" : memory->title)));
  }
  return warnings;
}

}  // namespace tpusim::tools

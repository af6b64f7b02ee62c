#include "tools/tpusim/unused_overrides.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::tools {
namespace {

// What a program asks of the machine.
struct Uses {
  std::set<isa::NumberFormat> formats;  // of matrix products
  bool eup = false, xlu = false;
  bool remote = false;    // anything sent to another device
  bool own_chip = false;  // ... of the same chip
  bool reduces = false;   // reduce-adds on arrival
  bool host = false;
  bool cmem = false;    // anything moved through CMEM
  int64_t kernels = 0;  // of the module, fused ones counted as their parts
  bool dcn = false;
  bool sparse_core = false;
  bool gathers = false, all_reduces = false, reduce_scatters = false;
  bool indexes = false;  // gathers and scatters: a DMA per slice
};

class Walker {
 public:
  Walker(const isa::PodProgram& program, Uses& uses) : program_(program), uses_(uses) {}

  // Bodies are shared, each is looked at once.
  void Visit(const isa::SharedBody& body) {
    if (body == nullptr || !seen_.insert(body.get()).second) return;
    for (const isa::Instruction& instruction : *body) std::visit(*this, instruction.kind);
  }

  void operator()(const isa::Block& block) {
    if (block.mxu.m > 0) uses_.formats.insert(block.mxu.format);
    uses_.eup |= block.eup > 0;
    uses_.xlu |= block.xlu > 0;
  }
  void operator()(const isa::Kernel& kernel) {
    (*this)(kernel.block);
    for (const isa::Window& w : kernel.windows) uses_.cmem |= w.space == isa::MemorySpace::kCmem;
  }
  void operator()(const isa::Dma& dma) {
    uses_.cmem |= dma.from == isa::MemorySpace::kCmem || dma.to == isa::MemorySpace::kCmem;
  }
  void operator()(const isa::Rdma& rdma) {
    uses_.remote = true;
    LookAt(program_.routes[rdma.route]);
    uses_.reduces |= rdma.reduce.has_value();
  }
  void operator()(const isa::HostDma&) { uses_.host = true; }
  void operator()(const isa::Loop& loop) { Visit(loop.body); }
  void operator()(const isa::Call& call) { Visit(call.body); }
  void operator()(const isa::Branch& branch) {
    for (const isa::SharedBody& body : branch.bodies) Visit(body);
  }
  void operator()(const isa::Start& start) {
    uses_.sparse_core |= start.stream.kind == isa::StreamKind::kSparseCore;
    Visit(start.body);
  }
  template <typename Other>
  void operator()(const Other&) {}

 private:
  void LookAt(const isa::Route& route) {
    for (size_t device = 0; device < route.from.size(); ++device) {
      const isa::RouteEnd& end = route.from[device];
      if (end.peer < 0 || end.peer == static_cast<int64_t>(device)) continue;
      uses_.dcn |= end.dcn;
      uses_.own_chip |= end.links.empty() && !end.dcn;
    }
  }

  const isa::PodProgram& program_;
  Uses& uses_;
  std::set<const isa::Body*> seen_;  // looked up, never iterated
};

// Why the parameter has no effect; "" if it may have one.
std::string WhyUnused(std::string_view path, const Uses& uses, const configs::Config& config) {
  struct Format {
    std::string_view path;
    isa::NumberFormat format;
  };
  constexpr Format kFormats[] = {
      {"chip.mxu.passes_bf16", isa::NumberFormat::kBf16},
      {"chip.mxu.passes_f32", isa::NumberFormat::kF32},
      {"chip.mxu.passes_f32_high", isa::NumberFormat::kF32High},
      {"chip.mxu.passes_f32_highest", isa::NumberFormat::kF32Highest},
      {"chip.mxu.passes_int8", isa::NumberFormat::kInt8},
      {"chip.mxu.passes_int4", isa::NumberFormat::kInt4},
      {"chip.mxu.passes_fp8", isa::NumberFormat::kFp8},
      {"chip.mxu.passes_int32", isa::NumberFormat::kInt32},
  };
  for (const Format& format : kFormats) {
    if (path == format.path && !uses.formats.contains(format.format)) {
      return "the program has no matrix product of that format";
    }
  }
  if (path == "ici.links") return "no timing rule depends on it";
  if (path == "chip.vmem.bytes" && (config.chip.cmem.bytes > Bytes(0) || uses.kernels < 2)) {
    return "no array would live in VMEM";
  }
  for (const std::string_view name : {"chip.dma.granule_bytes", "chip.dma.issue_cycles"}) {
    if (path == name && !uses.indexes) return "the program has no gather or scatter";
  }
  const auto below = [path](std::string_view prefix) { return path.starts_with(prefix); };
  if (below("chip.mxu.") && uses.formats.empty()) return "the program has no matrix product";
  if (below("chip.vpu.eup_") && !uses.eup) return "the program has no transcendental function";
  if (below("chip.vpu.xlu_") && !uses.xlu) return "the program moves nothing across lanes";
  if (path == "chip.cmem.bytes" && uses.kernels < 2) return "no array would live in CMEM";
  if (path == "chip.cmem.bytes_per_second" && !uses.cmem) return "nothing is in CMEM";
  if (path == "chip.sparse_core.tile_bytes") return "no part of the model uses it so far";
  struct OffLoad {
    std::string_view path;
    bool present;
  };
  for (const OffLoad& off_load :
       {OffLoad{"chip.sparse_core.offload_all_gather_bytes", uses.gathers},
        OffLoad{"chip.sparse_core.offload_all_reduce_bytes", uses.all_reduces},
        OffLoad{"chip.sparse_core.offload_reduce_scatter_bytes", uses.reduce_scatters}}) {
    if (path == off_load.path) return off_load.present ? "" : "the program has no such collective";
  }
  if (below("chip.sparse_core.") && !uses.sparse_core) return "the SparseCores run nothing";
  if (below("ici.") && !uses.remote) return "the program sends nothing to another device";
  if (path == "ici.die_to_die_bytes_per_second" && !uses.own_chip) {
    return "no device sends anything to another of its chip";
  }
  if (path == "ici.reduce_window_bytes" && !uses.reduces) return "nothing is added up on arrival";
  if (below("host.pcie") && !uses.host && !uses.dcn) {
    return "the program moves nothing to or from the host or another slice";
  }
  if (below("host.") && !below("host.pcie")) {
    if (config.topology.slices() == 1) return "there is only one slice";
    return uses.dcn ? "" : "the program sends nothing from slice to slice";
  }

  bool wrapped = false, unwrapped = false;
  for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
    if (config.topology.shape()[axis] == 1) continue;
    const bool closes = config.topology.wraps(axis) || config.topology.IsTwisted(axis);
    (closes ? wrapped : unwrapped) = true;
  }
  if (path == "ici.wrapped_efficiency" && !wrapped) {
    return fmt::format("no axis of {} wraps around", config.name);
  }
  if (path == "ici.unwrapped_efficiency" && !unwrapped) {
    return fmt::format("all axes of {} wrap around", config.name);
  }
  return "";
}

}  // namespace

std::vector<std::string> UnusedOverrides(const configs::Config& config,
                                         const isa::PodProgram& program,
                                         const hlo::Module& module) {
  if (config.overrides.empty()) return {};
  Uses uses;
  for (const hlo::Computation* computation : module.computations()) {
    for (const hlo::Instruction* i : computation->instructions()) {
      const hlo::Opcode opcode = i->opcode();
      uses.gathers |= opcode == hlo::Opcode::kAllGather || opcode == hlo::Opcode::kAllGatherStart;
      uses.all_reduces |= opcode == hlo::Opcode::kAllReduce;
      uses.reduce_scatters |= opcode == hlo::Opcode::kReduceScatter;
      uses.kernels += hlo::MovesThroughWindows(opcode) ? 1 : 0;
      uses.indexes |= i->opcode() == hlo::Opcode::kGather || i->opcode() == hlo::Opcode::kScatter;
    }
  }
  Walker walker(program, uses);
  for (const isa::SharedBody& body : program.programs) walker.Visit(body);
  std::vector<std::string> warnings;
  for (const configs::AppliedOverride& override : config.overrides) {
    const std::string why = WhyUnused(override.path, uses, config);
    if (why.empty()) continue;
    warnings.push_back(fmt::format("--set {} has no effect: {}", override.path, why));
  }
  return warnings;
}

}  // namespace tpusim::tools

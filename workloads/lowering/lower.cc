#include "workloads/lowering/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/timing/kernel_timing.h"
#include "workloads/collectives/collective.h"
#include "workloads/cost/schedule_graph.h"
#include "workloads/cost/transfers.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/execution.h"
#include "workloads/hlo/analysis/host_transfer.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/branches.h"
#include "workloads/hlo/rules/cost.h"
#include "workloads/kernels/custom_cost.h"
#include "workloads/kernels/product.h"
#include "workloads/kernels/vector_cost.h"
#include "workloads/lowering/operations.h"
#include "workloads/lowering/program_template.h"
#include "workloads/passes/schedule/schedule.h"

namespace tpusim::lowering {
namespace {

using hlo::Computation;
using hlo::Execution;
using hlo::Instruction;
using hlo::Opcode;

// Operations that recompute what the forward pass had are marked by JAX's
// checkpoint in their names; they are work, but not the model's.
bool IsRecomputation(const Instruction& i) {
  return i.op_name().find("rematted_computation") != std::string::npos;
}

constexpr Reason kBranchStated{"lowering.branch-stated", Action::kAssumed,
                               "{conditional} takes branch {branch}, as stated"};
constexpr Reason kBranchLongest{
    "lowering.branch-longest", Action::kAssumed,
    "{conditional} takes branch {branch}, the longest: its predicate is data"};
constexpr Reason kSendsToNext{
    "lowering.sends-to-next", Action::kAssumed,
    "{kernel} sends {bytes} bytes from every device: taken as sent to the next partition"};

absl::StatusOr<hlo::Cost> CostOfKernel(const Instruction& i) {
  if (i.opcode() != Opcode::kCustomCall) return hlo::CostOf(i);
  if (kernels::HasKernelOfItsOwn(i) && !kernels::IsFactorizationCall(i)) {
    // A comparison per candidate; the sorting network is the kernel's affair.
    hlo::Cost compared;
    compared.flops = Flops(hlo::Leaves(i.operand(0)->shape())[0]->ElementCount());
    return compared;
  }
  if (kernels::IsFactorizationCall(i)) return hlo::CostOf(i);
  ASSIGN_OR_RETURN(const kernels::CustomCost custom, kernels::CustomCostOf(i));
  hlo::Cost cost;
  cost.flops = custom.flops;
  cost.transcendentals = custom.transcendentals;
  return cost;
}

class Lowering {
 public:
  Lowering(const LoweringInput& input, const target::Target& target)
      : input_(input),
        target_(target),
        streams_(
            AssignStreams(*input.module, target.chip().sparse_core.count / target.chip().devices)),
        waits_(passes::WaitFacts(*input.module, target)),
        all_alike_(std::make_shared<const std::vector<int32_t>>(
            static_cast<size_t>(target.config().devices()), 0)) {}

  absl::StatusOr<isa::PodProgram> Run() {
    const configs::Config& config = target_.config();
    for (const hlo::LiveBuffer& b : input_.memory->buffers) {
      program_.info.buffers.push_back(
          {fmt::format("{} {}", b.made_by->name(), b.array->ToString()), b.bytes});
    }
    RETURN_IF_ERROR(PrepareOps());

    RETURN_IF_ERROR(DecideBranches());

    const ProgramTemplate program = TemplateOfProgram();
    // Devices by the roles they play and the branches they take, in device order.
    std::map<std::vector<int32_t>, int32_t> program_of_roles;
    program_.program_of_device.assign(static_cast<size_t>(config.devices()), -1);
    std::vector<int64_t> partition_of(static_cast<size_t>(config.devices()), -1);
    for (size_t p = 0; p < input_.collectives->device_of_partition().size(); ++p) {
      partition_of[static_cast<size_t>(input_.collectives->device_of_partition()[p])] =
          static_cast<int64_t>(p);
    }
    for (size_t device = 0; device < partition_of.size(); ++device) {
      if (partition_of[device] < 0) {
        program_.program_of_device[device] = IdleProgram();
        continue;
      }
      std::vector<int32_t> roles;
      for (const Collective& c : collectives_) roles.push_back((*c.lowered.role_of_device)[device]);
      for (const Branch& b : branches_) roles.push_back(b.taken[partition_of[device]]);
      const auto [it, fresh] =
          program_of_roles.try_emplace(roles, static_cast<int32_t>(program_.programs.size()));
      if (fresh) program_.programs.push_back(program.Program(roles));
      program_.program_of_device[device] = it->second;
    }
    RETURN_IF_ERROR(SumTotals(*input_.module->entry(), 1));
    RETURN_IF_ERROR(CheckTotals());
    return std::move(program_);
  }

 private:
  struct Collective {
    collectives::LoweredCollective lowered;
    int32_t op = -1;  // label on the collective stream
    int32_t token = -1;
    isa::StreamId stream;
  };
  struct Branch {
    const Instruction* conditional = nullptr;
    std::vector<int32_t> taken;  // by partition
  };
  struct Op {
    Execution what = Execution::kNothing;
    int32_t op = -1;          // label on the main stream
    int32_t collective = -1;  // index into collectives_
    int32_t branch = -1;      // index into branches_
    int64_t trips = 0;
    const Instruction* turns = nullptr;  // of a loop: the conditional that turns_ has
    Picoseconds time{0};                 // of itself, without what it calls
    isa::Kernel kernel;
    isa::Body transfer;
    timing::KernelTraffic traffic;
  };

  // Everything that is the same for all devices: kernels, labels, collectives.
  absl::Status PrepareOps() {
    for (const Computation* computation : hlo::ControlComputations(*input_.module)) {
      for (const Instruction* i : computation->Order()) {
        Op op;
        ASSIGN_OR_RETURN(op.what, hlo::ExecutionOf(*i));
        switch (op.what) {
          case Execution::kKernel: {
            ASSIGN_OR_RETURN(kernels::TimedKernel timed, input_.kernels->Build(*i));
            op.kernel = std::move(timed.kernel);
            op.traffic = timed.traffic;
            op.time = timed.time;
            RETURN_IF_ERROR(AddRemoteDma(*i, op));
            break;
          }
          case Execution::kTransfer: {
            ASSIGN_OR_RETURN(op.transfer, cost::TransferOf(*i, target_));
            // Where it is already, it is only renamed.
            if (op.transfer.empty()) op.what = Execution::kNothing;
            op.time = cost::TimeOfTransfer(target_.chip(), op.transfer);
            break;
          }
          case Execution::kCopyStart: {
            ASSIGN_OR_RETURN(isa::Body transfer, cost::TransferOf(*i, target_));
            op.time = cost::TimeOfTransfer(target_.chip(), transfer);
            AddTransfer(*i, std::move(transfer), op, streams_.at(i));
            break;
          }
          case Execution::kBranch: {
            op.branch = static_cast<int32_t>(branches_.size());
            branches_.push_back({i, {}});
            break;
          }
          case Execution::kLoop: {
            ASSIGN_OR_RETURN(op.trips, input_.trips(*i));
            if (const auto turns = hlo::TurnsOf(*i, op.trips)) {
              op.turns = turns->conditional;
              turns_.emplace(turns->conditional, *turns);
            }
            break;
          }
          case Execution::kCollective:
          case Execution::kStart: {
            RETURN_IF_ERROR(AddCollective(*i, op, streams_.at(i)));
            op.time = collectives_[op.collective].lowered.info.expected;
            break;
          }
          default:
            break;
        }
        if (op.what == Execution::kCollective) {
          // One operation, in flight on one stream and waited for on the other.
          op.op = collectives_[op.collective].op;
        } else if (op.what != Execution::kNothing && op.what != Execution::kScalar) {
          ASSIGN_OR_RETURN(op.op, AddOp(*i, op));
          if (op.collective >= 0) {
            program_.info.ops[op.op].starts = collectives_[op.collective].op;
          }
          if (op.what == Execution::kDone) {
            program_.info.ops[op.op].waits_for =
                collectives_[ops_.at(&hlo::StartOf(*i)).collective].op;
          }
        }
        ops_[i] = std::move(op);
      }
    }
    program_.tokens = static_cast<int32_t>(collectives_.size());
    return absl::OkStatus();
  }

  absl::Status AddCollective(const Instruction& i, Op& op, isa::StreamId stream) {
    Collective c;
    ASSIGN_OR_RETURN(c.lowered, input_.collectives->Lower(i, program_));
    isa::OpInfo info = InfoOf(i);
    if (hlo::IsAsyncStart(i.opcode())) WholeOf(i, info);
    info.sparse_core = hlo::IsOffLoaded(i);
    info.collective = static_cast<int32_t>(program_.info.collectives.size());
    program_.info.collectives.push_back(c.lowered.info);
    if (const auto fact = waits_.find(&i); fact != waits_.end()) {
      program_.info.collectives.back().reason = fact->second.reason;
      program_.info.collectives.back().reason_text = fact->second.text;
    }
    Add(std::move(c), std::move(info), op, stream);
    return absl::OkStatus();
  }

  // Beside the kernel that starts it.
  absl::Status AddRemoteDma(const Instruction& i, Op& op) {
    ASSIGN_OR_RETURN(std::optional<CollectiveLibrary::RemoteDma> dma,
                     input_.collectives->LowerRemoteDma(i, program_));
    if (!dma) return absl::OkStatus();
    isa::OpInfo info = InfoOf(i);
    info.name += ".remote-dma";
    info.category = dma->lowered.info.kind;
    info.is_async = true;
    info.collective = static_cast<int32_t>(program_.info.collectives.size());
    program_.info.collectives.push_back(dma->lowered.info);
    records_.Add(kSendsToNext, i.name(), {{"kernel", i.Describe()}, {"bytes", dma->bytes.value()}});
    Collective c;
    c.lowered = std::move(dma->lowered);
    Add(std::move(c), std::move(info), op, streams_.at(&i));
    return absl::OkStatus();
  }

  // A copy beside the main stream, the same on every device.
  void AddTransfer(const Instruction& i, isa::Body transfer, Op& op, isa::StreamId stream) {
    Collective c;
    c.lowered.bodies.push_back(std::make_shared<const isa::Body>(std::move(transfer)));
    c.lowered.role_of_device = all_alike_;
    isa::OpInfo info = InfoOf(i);
    WholeOf(i, info);
    Add(std::move(c), std::move(info), op, stream);
  }

  // On its own stream the whole transfer runs, not just its start.
  static void WholeOf(const Instruction& i, isa::OpInfo& info) {
    const std::string suffix = "-start";
    const size_t at = info.name.rfind(suffix);
    if (at != std::string::npos) info.name.erase(at, suffix.size());
    info.category = std::string(hlo::OpcodeName(hlo::WrappedBy(i).opcode()));
    if (info.category.ends_with(suffix)) info.category.erase(info.category.size() - suffix.size());
    if (const auto transfer = hlo::HostTransferOf(i)) info.category = CategoryOf(*transfer);
    info.is_async = true;
  }

  void Add(Collective c, isa::OpInfo info, Op& op, isa::StreamId stream) {
    c.op = static_cast<int32_t>(program_.info.ops.size());
    program_.info.ops.push_back(std::move(info));
    c.token = static_cast<int32_t>(collectives_.size());
    c.stream = stream;
    op.collective = static_cast<int32_t>(collectives_.size());
    collectives_.push_back(std::move(c));
  }

  // Branches by partition, once the lengths of all computations are known.
  absl::Status DecideBranches() {
    if (branches_.empty()) return absl::OkStatus();
    std::unordered_map<const Computation*, Picoseconds> lengths;
    const std::vector<Computation*> computations = hlo::ControlComputations(*input_.module);
    for (auto c = computations.rbegin(); c != computations.rend(); ++c) {
      Picoseconds sum(0);
      for (const Instruction* i : (*c)->Order()) {
        const Op& op = ops_.at(i);
        sum += op.time;
        if (op.what == Execution::kBranch) sum += LengthOfBranches(*i, lengths);
        if (op.what == Execution::kCall) sum += lengths.at(i->called()[0]);
        if (op.what == Execution::kLoop) {
          for (const Computation* inner : i->called()) sum += lengths.at(inner) * op.trips;
        }
      }
      lengths[*c] = sum;
    }
    for (Branch& branch : branches_) DecideBranch(branch, lengths);
    return absl::OkStatus();
  }

  static const Computation* LongestBranch(
      const Instruction& conditional,
      const std::unordered_map<const Computation*, Picoseconds>& lengths) {
    const std::vector<Computation*> branches = hlo::RunBy(conditional);
    return *std::ranges::max_element(branches, {},
                                     [&](const Computation* c) { return lengths.at(c); });
  }

  // The longest, or the mean of those that are taken in turns.
  Picoseconds LengthOfBranches(
      const Instruction& i,
      const std::unordered_map<const Computation*, Picoseconds>& lengths) const {
    const auto turns = turns_.find(&i);
    if (turns == turns_.end()) return lengths.at(LongestBranch(i, lengths));
    Picoseconds sum(0);
    const hlo::LoopInTurns& all = turns->second;
    for (size_t b = 0; b < all.of_branches.size(); ++b) {
      sum += lengths.at(i.called()[b]) * all.of_branches[b];
    }
    return Picoseconds(sum.value() / std::max<int64_t>(1, all.trips));
  }

  void DecideBranch(Branch& branch,
                    const std::unordered_map<const Computation*, Picoseconds>& lengths) {
    const Instruction& i = *branch.conditional;
    const Computation* longest = LongestBranch(i, lengths);
    const auto index = static_cast<int32_t>(
        std::find(i.called().begin(), i.called().end(), longest) - i.called().begin());
    bool assumed = false, stated = false;
    const size_t partitions = input_.collectives->device_of_partition().size();
    if (turns_.contains(&i)) {  // The loop says which.
      branch.taken.assign(partitions, index);
      return;
    }
    for (size_t p = 0; p < partitions; ++p) {
      const hlo::BranchChoice choice = hlo::BranchOf(i, static_cast<int64_t>(p));
      branch.taken.push_back(choice.taken.value_or(index));
      assumed = assumed || !choice.taken;
      stated = stated || choice.stated;
    }
    if (!assumed && !stated) return;
    records_.Add(stated ? kBranchStated : kBranchLongest, i.name(),
                 {{"conditional", i.Describe()}, {"branch", branch.taken.front()}});
  }

  static isa::OpInfo InfoOf(const Instruction& i) {
    isa::OpInfo info;
    info.name = i.name();
    info.category = CategoryOf(i);
    info.scope = i.op_name();
    info.source = i.SourceLocation();
    info.shape = i.shape().ToString();
    return info;
  }

  absl::StatusOr<int32_t> AddOp(const Instruction& i, const Op& op) {
    isa::OpInfo info = InfoOf(i);
    if (op.what == Execution::kKernel) {
      ASSIGN_OR_RETURN(const hlo::Cost cost, CostOfKernel(i));
      info.flops = cost.flops;
      info.model_flops = IsRecomputation(i) ? Flops(0) : cost.flops;
      info.hbm_bytes = op.traffic.read + op.traffic.written;
    }
    program_.info.ops.push_back(std::move(info));
    return static_cast<int32_t>(program_.info.ops.size() - 1);
  }

  int32_t IdleProgram() {
    if (idle_ < 0) {
      idle_ = static_cast<int32_t>(program_.programs.size());
      program_.programs.push_back(std::make_shared<const isa::Body>());
    }
    return idle_;
  }

  isa::MemorySpace SpaceOfBuffer(int32_t buffer) const {
    return configs::MemoryOfNumber(input_.memory->buffers[buffer].space).space;
  }

  // What all devices run, but for their roles.
  ProgramTemplate TemplateOfProgram() {
    ProgramTemplate program;
    for (int32_t b : input_.memory->arguments) program.Add(isa::Alloc{SpaceOfBuffer(b), b});
    AppendComputation(*input_.module->entry(), program);
    program.Finish();
    return program;
  }

  void AppendComputation(const Computation& computation, ProgramTemplate& body) {
    const hlo::ComputationLives& memory = input_.memory->computations.at(&computation);
    const std::vector<Instruction*> order = computation.Order();
    for (size_t n = 0; n < order.size(); ++n) {
      for (int32_t b : memory.alloc_before[n]) body.Add(isa::Alloc{SpaceOfBuffer(b), b});
      AppendInstruction(*order[n], body);
      for (int32_t b : memory.free_after[n]) body.Add(isa::Free{SpaceOfBuffer(b), b});
    }
  }

  void AppendInstruction(const Instruction& i, ProgramTemplate& body) {
    const Op& op = ops_.at(&i);
    if (op.what == Execution::kNothing) return;
    if (op.what == Execution::kScalar) {
      body.Add(kernels::ScalarBlock(i, target_));
      return;
    }
    body.Add(isa::Label{op.op, true});
    switch (op.what) {
      case Execution::kKernel:
        if (op.collective >= 0) AppendStart(op.collective, body);
        body.Add(op.kernel);
        if (op.collective >= 0) AppendDone(op.collective, body);
        break;
      case Execution::kCollective:
        AppendStart(op.collective, body);
        AppendDone(op.collective, body);
        break;
      case Execution::kStart:
      case Execution::kCopyStart:
        AppendStart(op.collective, body);
        break;
      case Execution::kTransfer:
        body.Add(op.transfer);
        break;
      case Execution::kBranch: {
        if (const auto turn = turn_.find(&i); turn != turn_.end()) {
          AppendComputation(*i.called()[turn->second], body);
          break;
        }
        std::vector<ProgramTemplate> bodies(i.called().size());
        for (size_t n = 0; n < bodies.size(); ++n) AppendComputation(*i.called()[n], bodies[n]);
        body.AddBranch(RoleOf(branches_[op.branch]), std::move(bodies));
        break;
      }
      case Execution::kCall:
        AppendComputation(*i.called()[0], body);
        break;
      case Execution::kDone:
        AppendDone(ops_.at(&hlo::StartOf(i)).collective, body);
        break;
      case Execution::kLoop: {
        // One loop for all passes, or one for those of each branch.
        std::vector<int64_t> passes{op.trips};
        if (op.turns != nullptr) passes = turns_.at(op.turns).of_branches;
        for (size_t branch = 0; branch < passes.size(); ++branch) {
          if (op.turns != nullptr) turn_[op.turns] = branch;
          ProgramTemplate inner;
          AppendComputation(*i.called()[1], inner);  // the condition, every time
          AppendComputation(*i.called()[0], inner);
          body.AddLoop(passes[branch], std::move(inner));
        }
        break;
      }
      default:
        break;
    }
    body.Add(isa::Label{op.op, false});
  }

  // Not on devices that take no part.
  void AppendStart(int32_t collective, ProgramTemplate& body) {
    body.AddVarying(RoleOf(collective), [=, this](int32_t role) -> std::optional<isa::Instruction> {
      if (role < 0) return std::nullopt;
      const Collective& c = collectives_[collective];
      return isa::Instruction{isa::Start{c.stream, c.token, Labelled(collective, role)}};
    });
  }

  void AppendDone(int32_t collective, ProgramTemplate& body) {
    body.AddVarying(RoleOf(collective), [=, this](int32_t role) -> std::optional<isa::Instruction> {
      if (role < 0) return std::nullopt;
      return isa::Instruction{isa::Done{collectives_[collective].token}};
    });
  }

  // Which of the roles of a device it is, and what it is if that is the same for all.
  TemplateRole RoleOf(int32_t collective) const {
    const std::vector<int32_t>& roles = *collectives_[collective].lowered.role_of_device;
    const std::vector<int64_t>& devices = input_.collectives->device_of_partition();
    const int32_t first = roles[devices.front()];
    const bool same = std::ranges::all_of(devices, [&](int64_t d) { return roles[d] == first; });
    return {static_cast<size_t>(collective), same ? std::optional(first) : std::nullopt};
  }
  TemplateRole RoleOf(const Branch& branch) const {
    const int32_t first = branch.taken.front();
    const bool same = std::ranges::count(branch.taken, first) == std::ssize(branch.taken);
    return {collectives_.size() + static_cast<size_t>(&branch - branches_.data()),
            same ? std::optional(first) : std::nullopt};
  }

  // What a role does on the collective's stream.
  const isa::SharedBody& Labelled(int32_t collective, int32_t role) {
    isa::SharedBody& labelled = labelled_[{collective, role}];
    if (labelled == nullptr) {
      const Collective& c = collectives_[collective];
      labelled = std::make_shared<const isa::Body>(isa::Body{{isa::Label{c.op, true}},
                                                             {isa::Call{c.lowered.bodies[role]}},
                                                             {isa::Label{c.op, false}}});
    }
    return labelled;
  }

  absl::Status SumTotals(const Computation& computation, int64_t times) {
    isa::ProgramInfo& info = program_.info;
    for (const Instruction* i : computation.Order()) {
      const Op& op = ops_.at(i);
      if (op.what == Execution::kLoop) {
        for (const Computation* inner : i->called()) {
          RETURN_IF_ERROR(SumTotals(*inner, SaturatedProduct(times, op.trips)));
        }
      } else if (op.what == Execution::kCall) {
        RETURN_IF_ERROR(SumTotals(*i->called()[0], times));
      } else if (op.what == Execution::kBranch) {
        if (const auto turns = turns_.find(i); turns != turns_.end()) {
          const hlo::LoopInTurns& all = turns->second;  // `times` are the passes of all together
          for (size_t b = 0; b < all.of_branches.size(); ++b) {
            const int64_t own = SaturatedProduct(times / all.trips, all.of_branches[b]);
            if (own > 0) RETURN_IF_ERROR(SumTotals(*i->called()[b], own));
          }
          continue;
        }
        // What partition 0 does counts for all.
        const int32_t taken = branches_[op.branch].taken.front();
        RETURN_IF_ERROR(SumTotals(*i->called()[taken], times));
      }
      if (op.what != Execution::kKernel) continue;
      const isa::OpInfo& o = info.ops[op.op];
      info.hardware_flops += o.flops * times;
      info.model_flops += o.model_flops * times;
      info.hbm_bytes += o.hbm_bytes * times;
      if (const Instruction* dot = kernels::ProductIn(*i)) {
        ASSIGN_OR_RETURN(const hlo::Cost cost, hlo::CostOf(*dot));
        const double passes = timing::FormatPasses(target_.chip().mxu, op.kernel.block.mxu.format);
        info.mxu_flops +=
            Flops(ToCount(std::round(static_cast<double>(cost.flops.value()) * passes))) * times;
      } else if (i->opcode() == Opcode::kCustomCall && !kernels::HasKernelOfItsOwn(*i)) {
        ASSIGN_OR_RETURN(const kernels::CustomCost custom, kernels::CustomCostOf(*i));
        info.mxu_flops += kernels::MatrixFlops(custom, target_) * times;
      }
    }
    return absl::OkStatus();
  }

  // Sums stop at the largest number there is.
  absl::Status CheckTotals() const {
    const isa::ProgramInfo& info = program_.info;
    const auto uncounted = [](const char* what) {
      return UserError(fmt::format(
          "the program has more than {:.2g} {} per device, which is more than can be counted; give "
          "its loops fewer passes (--trip-count), its kernels less to do (--kernel-cost)",
          static_cast<double>(Flops::Max().value()), what));
    };
    if (std::max(info.hardware_flops, info.mxu_flops) == Flops::Max()) return uncounted("FLOPs");
    return info.hbm_bytes == Bytes::Max() ? uncounted("bytes through HBM") : absl::OkStatus();
  }

  const LoweringInput& input_;
  const target::Target& target_;
  const std::unordered_map<const Instruction*, isa::StreamId> streams_;
  const std::unordered_map<const Instruction*, passes::WaitFact> waits_;
  const std::shared_ptr<const std::vector<int32_t>> all_alike_;  // a role for all devices
  isa::PodProgram program_;
  const Records records_{&program_.info.records};
  std::unordered_map<const Instruction*, Op> ops_;
  std::vector<Collective> collectives_;
  std::vector<Branch> branches_;
  // Conditionals whose branches a loop takes in turns, and whose turn it is.
  std::unordered_map<const Instruction*, hlo::LoopInTurns> turns_;
  std::unordered_map<const Instruction*, size_t> turn_;
  std::map<std::pair<int32_t, int32_t>, isa::SharedBody> labelled_;
  int32_t idle_ = -1;
};

}  // namespace

absl::StatusOr<isa::PodProgram> Lower(const LoweringInput& input, const target::Target& target) {
  return Lowering(input, target).Run();
}

}  // namespace tpusim::lowering

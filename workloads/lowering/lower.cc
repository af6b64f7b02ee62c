#include "workloads/lowering/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "configs/memory.h"
#include "configs/status_macros.h"
#include "workloads/buffers/owners.h"
#include "workloads/buffers/vmem_peak.h"
#include "workloads/collectives/collective.h"
#include "workloads/cost/schedule_graph.h"
#include "workloads/cost/transfers.h"
#include "workloads/hlo/analysis/async.h"
#include "workloads/hlo/analysis/branch_choice.h"
#include "workloads/hlo/analysis/call_graph.h"
#include "workloads/hlo/analysis/compiled.h"
#include "workloads/hlo/analysis/execution.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/hlo/rules/branches.h"
#include "workloads/kernels/tiling/stated_windows.h"
#include "workloads/kernels/vector_work/vector_cost.h"
#include "workloads/lowering/carried.h"
#include "workloads/lowering/op_info.h"
#include "workloads/lowering/operations.h"
#include "workloads/lowering/program_template.h"
#include "workloads/lowering/repeated_runs.h"
#include "workloads/lowering/streams.h"
#include "workloads/passes/schedule/schedule.h"

namespace tpusim::lowering {
namespace {

using hlo::Computation;
using hlo::Execution;
using hlo::Instruction;

constexpr Reason kBranchStated{"lowering.branch-stated", Action::kAssumed,
                               "{conditional} takes branch {branch}, as stated"};
constexpr Reason kBranchLongest{
    "lowering.branch-longest", Action::kAssumed,
    "{conditional} takes branch {branch}, the longest: its predicate is data"};
constexpr Reason kVmemUnknown{
    "lowering.vmem-unknown", Action::kAssumed,
    "VMEM at its peak is not known: what the compiler has placed there would be {bytes} B at "
    "{subject}, more than there is"};
constexpr Reason kSendsToNext{
    "lowering.sends-to-next", Action::kAssumed,
    "{kernel} sends {bytes} bytes from every device: taken as sent to the next partition"};

class Lowering {
 public:
  Lowering(const LoweringInput& input, const target::Target& target)
      : input_(input),
        values_(*input.module),
        target_(target),
        streams_(
            AssignStreams(*input.module, target.chip().sparse_core.count / target.chip().devices)),
        waits_(passes::WaitFacts(*input.module, target)),
        all_alike_(std::make_shared<const std::vector<int32_t>>(
            static_cast<size_t>(target.config().devices()), 0)) {}

  // Checks that arrays in VMEM fit, but for what the TPU compiler has placed, which does.
  absl::Status CheckVmem() {
    isa::VmemAtPeak& peak = program_.info.vmem_at_peak;
    if (peak.bytes <= peak.capacity) return absl::OkStatus();
    if (hlo::IsCompiled(*input_.module)) {
      records_.Add(kVmemUnknown, peak.operation, {{"bytes", peak.bytes.value()}});
      peak = isa::VmemAtPeak();
      peak.capacity = configs::VmemCapacity(target_.chip());
      return absl::OkStatus();
    }
    return UserError(fmt::format(
        "what is in VMEM while {} runs takes {} B, {} of them in arrays that the module itself "
        "puts there (S(1) in layouts), and {} has {} B",
        peak.operation, peak.bytes.value(), (peak.bytes - peak.windows).value(),
        target_.chip().name, peak.capacity.value()));
  }

  absl::StatusOr<isa::PodProgram> Run() {
    const configs::Config& config = target_.config();
    buffers::Ownership ownership = buffers::FindOwners(*input_.module, *input_.memory);
    program_.info.live_at_peak = std::move(ownership.at_peak);
    program_.info.owners = std::move(ownership.owners);
    for (const hlo::LiveBuffer& b : input_.memory->buffers) {
      const int32_t owner = ownership.of_buffer[program_.info.buffers.size()];
      program_.info.buffers.push_back(
          {fmt::format("{} {}", b.made_by->name(), b.array->ToString()), b.bytes, owner});
    }
    for (const Computation* computation : hlo::ControlComputations(*input_.module)) {
      const NextNames before = Names();
      RETURN_IF_ERROR(PrepareOps(*computation));
      ops_.names[computation] = {before, Names()};
    }
    program_.info.vmem_at_peak =
        buffers::MostOfVmem(*input_.module, target_, [&](const Instruction& i) {
          const auto op = ops_.of.find(&i);
          if (op == ops_.of.end()) return Bytes(0);
          return kernels::StatedVmemOf(i).value_or(timing::WindowBytes(op->second.kernel));
        });
    RETURN_IF_ERROR(CheckVmem());
    program_.tokens = static_cast<int32_t>(ops_.collectives.size());

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
      for (const Collective& c : ops_.collectives)
        roles.push_back((*c.lowered.role_of_device)[device]);
      for (const Branch& b : ops_.branches) roles.push_back(b.taken[partition_of[device]]);
      const auto [it, fresh] =
          program_of_roles.try_emplace(roles, static_cast<int32_t>(program_.programs.size()));
      if (fresh) program_.programs.push_back(program.Program(roles));
      program_.program_of_device[device] = it->second;
    }
    RETURN_IF_ERROR(AddTotals(*input_.module->entry(), ops_, target_, program_.info));
    return std::move(program_);
  }

 private:
  NextNames Names() const {
    return {static_cast<int32_t>(program_.info.ops.size()),
            static_cast<int32_t>(ops_.collectives.size()), program_.flags};
  }

  // Prepares what is the same for all devices: kernels, labels, collectives. Names are in the order
  // of the schedule, so that those of equal layers differ by the same.
  absl::Status PrepareOps(const Computation& computation) {
    for (const Instruction* i : computation.Order()) {
      Operation op;
      op.names = Names();
      ASSIGN_OR_RETURN(op.what, hlo::ExecutionOf(*i));
      switch (op.what) {
        case Execution::kKernel: {
          ASSIGN_OR_RETURN(kernels::TimedKernel timed, input_.kernels->Build(*i));
          op.kernel = std::move(timed.kernel);
          op.kernel.polls = Carries(*i);
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
          op.branch = static_cast<int32_t>(ops_.branches.size());
          ops_.branches.push_back({i, {}});
          break;
        }
        case Execution::kLoop: {
          ASSIGN_OR_RETURN(op.trips, input_.trips(*i));
          if (const auto turns = hlo::TurnsOf(*i, op.trips, values_)) {
            op.turns = turns->conditional;
            ops_.turns.emplace(turns->conditional, *turns);
          }
          break;
        }
        case Execution::kCollective:
        case Execution::kStart: {
          RETURN_IF_ERROR(AddCollective(*i, op, streams_.at(i)));
          op.time = ops_.collectives[op.collective].lowered.info.expected;
          if (IsCarried(*i)) op.transfer = BeginOfCarried(*i, target_.chip());
          break;
        }
        default:
          break;
      }
      if (op.what == Execution::kCollective) {
        // One operation, in flight on one stream and waited for on the other.
        op.op = ops_.collectives[op.collective].op;
      } else if (op.what != Execution::kNothing && op.what != Execution::kScalar) {
        op.op = static_cast<int32_t>(program_.info.ops.size());
        isa::OpInfo& info = program_.info.ops.emplace_back(InfoOf(*i));
        if (op.what == Execution::kKernel) {
          ASSIGN_OR_RETURN(info, InfoOfKernel(*i, op.traffic));
          if (const auto windows = kernels::StatedWindowsOf(*i); windows && windows->estimate) {
            info.compiler_estimate = ToTime(*windows->estimate, target_.chip().clock);
          }
        }
        if (op.collective >= 0) {
          info.starts = ops_.collectives[op.collective].op;
        }
        if (op.what == Execution::kDone) {
          info.waits_for = ops_.collectives[ops_.of.at(&hlo::StartOf(*i)).collective].op;
        }
      }
      ops_.of[i] = std::move(op);
    }
    return absl::OkStatus();
  }

  absl::Status AddCollective(const Instruction& i, Operation& op, isa::StreamId stream) {
    Collective c;
    ASSIGN_OR_RETURN(c.lowered, input_.collectives->Lower(i, program_));
    isa::OpInfo info = hlo::IsAsyncStart(i.opcode()) ? InfoOfWhole(i) : InfoOf(i);
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
  absl::Status AddRemoteDma(const Instruction& i, Operation& op) {
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
  void AddTransfer(const Instruction& i, isa::Body transfer, Operation& op, isa::StreamId stream) {
    Collective c;
    c.lowered.bodies.push_back(std::make_shared<const isa::Body>(std::move(transfer)));
    c.lowered.role_of_device = all_alike_;
    Add(std::move(c), InfoOfWhole(i), op, stream);
  }

  void Add(Collective c, isa::OpInfo info, Operation& op, isa::StreamId stream) {
    c.op = static_cast<int32_t>(program_.info.ops.size());
    program_.info.ops.push_back(std::move(info));
    c.token = static_cast<int32_t>(ops_.collectives.size());
    c.stream = stream;
    op.collective = static_cast<int32_t>(ops_.collectives.size());
    ops_.collectives.push_back(std::move(c));
  }

  // Branches by partition, once the lengths of all computations are known.
  absl::Status DecideBranches() {
    if (ops_.branches.empty()) return absl::OkStatus();
    std::unordered_map<const Computation*, Picoseconds> lengths;
    const std::vector<Computation*> computations = hlo::ControlComputations(*input_.module);
    for (auto c = computations.rbegin(); c != computations.rend(); ++c) {
      Picoseconds sum(0);
      for (const Instruction* i : (*c)->Order()) {
        const Operation& op = ops_.of.at(i);
        sum += op.time;
        if (op.what == Execution::kBranch) sum += LengthOfBranches(*i, lengths);
        if (op.what == Execution::kCall) sum += lengths.at(i->called()[0]);
        if (op.what == Execution::kLoop) {
          for (const Computation* inner : i->called()) sum += lengths.at(inner) * op.trips;
        }
      }
      lengths[*c] = sum;
    }
    for (Branch& branch : ops_.branches) DecideBranch(branch, lengths);
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
    const auto turns = ops_.turns.find(&i);
    if (turns == ops_.turns.end()) return lengths.at(LongestBranch(i, lengths));
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
    if (ops_.turns.contains(&i)) {  // The loop says which.
      branch.taken.assign(partitions, index);
      return;
    }
    for (size_t p = 0; p < partitions; ++p) {
      const hlo::BranchChoice choice = hlo::BranchOf(i, static_cast<int64_t>(p), values_);
      branch.taken.push_back(choice.taken.value_or(index));
      assumed = assumed || !choice.taken;
      stated = stated || choice.stated;
    }
    if (!assumed && !stated) return;
    records_.Add(stated ? kBranchStated : kBranchLongest, i.name(),
                 {{"conditional", i.Describe()}, {"branch", branch.taken.front()}});
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

  // Returns the program that all devices run, but for their roles.
  ProgramTemplate TemplateOfProgram() {
    ProgramTemplate program;
    for (int32_t b : input_.memory->arguments) program.Add(isa::Alloc{SpaceOfBuffer(b), b});
    AppendComputation(*input_.module->entry(), program);
    program.Finish();
    return program;
  }

  // Returns the instructions by which something happens.
  std::vector<Scheduled> ScheduleOf(const Computation& computation) const {
    const hlo::ComputationLives& memory = input_.memory->computations.at(&computation);
    const std::vector<Instruction*> order = computation.Order();
    std::vector<Scheduled> schedule;
    for (size_t n = 0; n < order.size(); ++n) {
      const Scheduled scheduled{order[n], memory.alloc_before[n], memory.free_after[n]};
      if (ops_.of.at(order[n]).what != Execution::kNothing || !scheduled.allocated.empty() ||
          !scheduled.freed.empty()) {
        schedule.push_back(scheduled);
      }
    }
    return schedule;
  }

  // Numbers what is done, whatever its names: equal numbers do the same, with names that are as far
  // from the next ones.
  int32_t DoneBy(const Scheduled& scheduled) {
    const Operation& op = ops_.of.at(scheduled.instruction);
    std::vector<int64_t> done = {static_cast<int64_t>(op.what), op.trips};
    for (const std::vector<int32_t>* buffers : {&scheduled.allocated, &scheduled.freed}) {
      done.push_back(static_cast<int64_t>(buffers->size()));
      for (const int32_t b : *buffers) {
        const isa::BufferInfo& buffer = program_.info.buffers[b];
        done.insert(done.end(),
                    {static_cast<int64_t>(SpaceOfBuffer(b)), buffer.bytes.value(), buffer.owner});
      }
    }
    if (op.what == Execution::kScalar) {
      AppendWork(kernels::ScalarBlock(*scheduled.instruction, target_), done);
    } else if (op.what == Execution::kKernel) {
      AppendWork(op.kernel, done);
    } else if (op.what == Execution::kDone) {
      const int32_t collective = ops_.of.at(&hlo::StartOf(*scheduled.instruction)).collective;
      const Collective& c = ops_.collectives[collective];
      done.insert(done.end(),
                  {op.names[static_cast<int>(isa::NameKind::kToken)] - collective, op.op - c.op,
                   std::bit_cast<int64_t>(c.lowered.role_of_device.get())});
    } else {
      AppendWork(op.transfer, done);
    }
    if (op.collective >= 0) {
      // Equal ones have their roles in common.
      const Collective& c = ops_.collectives[op.collective];
      done.insert(done.end(), {std::bit_cast<int64_t>(c.lowered.role_of_device.get()),
                               static_cast<int64_t>(c.stream.kind), c.stream.index});
      if (c.lowered.role_of_device == all_alike_) AppendWork(*c.lowered.bodies[0], done);
    }
    if (op.branch >= 0) {
      const std::vector<int32_t>& taken = ops_.branches[op.branch].taken;
      done.insert(done.end(), taken.begin(), taken.end());
    }
    if (op.turns != nullptr) {
      const std::vector<int64_t>& turns = ops_.turns.at(op.turns).of_branches;
      done.insert(done.end(), turns.begin(), turns.end());
    }
    if (hlo::IsControlFlow(scheduled.instruction->opcode())) {
      for (const Computation* called : scheduled.instruction->called()) {
        done.push_back(-1);
        for (const Scheduled& inner : ScheduleOf(*called)) done.push_back(DoneBy(inner));
      }
    }
    return done_.try_emplace(std::move(done), static_cast<int32_t>(done_.size())).first->second;
  }

  void AppendComputation(const Computation& computation, ProgramTemplate& body) {
    const std::vector<Scheduled> schedule = ScheduleOf(computation);
    std::vector<RepeatedRun> runs;
    if (!in_iteration_) {
      std::vector<int32_t> done;
      for (const Scheduled& scheduled : schedule) done.push_back(DoneBy(scheduled));
      runs = FindRepeatedRuns(done);
    }
    size_t next = 0;
    const auto append_until = [&](size_t end, ProgramTemplate& to) {
      for (; next < end; ++next) Append(schedule[next], to);
    };
    for (const RepeatedRun& run : runs) {
      auto iterations = IterationsOf(run, schedule, ops_);
      if (iterations == nullptr) continue;
      append_until(run.begin, body);
      ProgramTemplate iteration;
      in_iteration_ = true;
      append_until(run.begin + run.length, iteration);
      in_iteration_ = false;
      body.AddLoop(run.count, std::move(iteration), std::move(iterations));
      next = run.begin + run.length * static_cast<size_t>(run.count);
    }
    append_until(schedule.size(), body);
  }

  void Append(const Scheduled& scheduled, ProgramTemplate& body) {
    for (int32_t b : scheduled.allocated) body.Add(isa::Alloc{SpaceOfBuffer(b), b});
    AppendInstruction(*scheduled.instruction, body);
    for (int32_t b : scheduled.freed) body.Add(isa::Free{SpaceOfBuffer(b), b});
  }

  void AppendInstruction(const Instruction& i, ProgramTemplate& body) {
    const Operation& op = ops_.of.at(&i);
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
        body.Add(op.transfer);
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
        body.AddBranch(RoleOf(ops_.branches[op.branch]), std::move(bodies));
        break;
      }
      case Execution::kCall:
        AppendComputation(*i.called()[0], body);
        break;
      case Execution::kDone:
        AppendDone(ops_.of.at(&hlo::StartOf(i)).collective, body);
        break;
      case Execution::kLoop: {
        // One loop for all passes, or one for those of each branch.
        std::vector<int64_t> passes{op.trips};
        if (op.turns != nullptr) passes = ops_.turns.at(op.turns).of_branches;
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
      const Collective& c = ops_.collectives[collective];
      return isa::Instruction{isa::Start{c.stream, c.token, Labelled(collective, role)}};
    });
  }

  void AppendDone(int32_t collective, ProgramTemplate& body) {
    body.AddVarying(RoleOf(collective), [=, this](int32_t role) -> std::optional<isa::Instruction> {
      if (role < 0) return std::nullopt;
      return isa::Instruction{isa::Done{ops_.collectives[collective].token}};
    });
  }

  // Returns which of the roles of a device it is, and the role itself if all have the same.
  TemplateRole RoleOf(int32_t collective) const {
    const std::vector<int32_t>& roles = *ops_.collectives[collective].lowered.role_of_device;
    const std::vector<int64_t>& devices = input_.collectives->device_of_partition();
    const int32_t first = roles[devices.front()];
    const bool same = std::ranges::all_of(devices, [&](int64_t d) { return roles[d] == first; });
    return {static_cast<size_t>(collective), same ? std::optional(first) : std::nullopt};
  }
  TemplateRole RoleOf(const Branch& branch) const {
    const int32_t first = branch.taken.front();
    const bool same = std::ranges::count(branch.taken, first) == std::ssize(branch.taken);
    return {ops_.collectives.size() + static_cast<size_t>(&branch - ops_.branches.data()),
            same ? std::optional(first) : std::nullopt};
  }

  // Returns what a role does on the collective's stream.
  const isa::SharedBody& Labelled(int32_t collective, int32_t role) {
    isa::SharedBody& labelled = labelled_[{collective, role}];
    if (labelled == nullptr) {
      const Collective& c = ops_.collectives[collective];
      labelled = std::make_shared<const isa::Body>(isa::Body{{isa::Label{c.op, true}},
                                                             {isa::Call{c.lowered.bodies[role]}},
                                                             {isa::Label{c.op, false}}});
    }
    return labelled;
  }

  const LoweringInput& input_;
  const hlo::KnownValues values_;
  const target::Target& target_;
  const std::unordered_map<const Instruction*, isa::StreamId> streams_;
  const std::unordered_map<const Instruction*, passes::WaitFact> waits_;
  const std::shared_ptr<const std::vector<int32_t>> all_alike_;  // a role for all devices
  isa::PodProgram program_;
  const Records records_{&program_.info.records};
  Operations ops_;
  // The branch whose turn it is, of conditionals whose branches a loop takes in turns.
  std::unordered_map<const Instruction*, size_t> turn_;
  std::map<std::pair<int32_t, int32_t>, isa::SharedBody> labelled_;
  absl::flat_hash_map<std::vector<int64_t>, int32_t> done_;  // looked up, never iterated over
  bool in_iteration_ = false;  // of a loop whose iterations have names of their own
  int32_t idle_ = -1;
};

}  // namespace

absl::StatusOr<isa::PodProgram> Lower(const LoweringInput& input, const target::Target& target) {
  return Lowering(input, target).Run();
}

}  // namespace tpusim::lowering

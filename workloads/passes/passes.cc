#include "workloads/passes/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "configs/status_macros.h"
#include "workloads/passes/annotate/annotate.h"
#include "workloads/passes/collectives/collectives.h"
#include "workloads/passes/compiled/compiled.h"
#include "workloads/passes/copies/copies.h"
#include "workloads/passes/fusion/fuse.h"
#include "workloads/passes/host/host.h"
#include "workloads/passes/layout/layout.h"
#include "workloads/passes/loops/loops.h"
#include "workloads/passes/rematerialize/rematerialize.h"
#include "workloads/passes/schedule/schedule.h"
#include "workloads/passes/simplify/simplify.h"
#include "workloads/passes/simplify/stable_sorts.h"
#include "workloads/passes/spaces/memory_space_assignment.h"

namespace tpusim::passes {
namespace {

using Function = absl::StatusOr<bool> (*)(hlo::Module&, const PassContext&);

// A pass without options.
template <Function function>
absl::StatusOr<bool> Plain(hlo::Module& module, const PassContext& context, const OptionValues&) {
  return function(module, context);
}

bool On(const OptionValues& options, std::string_view name) {
  return options.find(name)->second == "on";
}

PassOption Switch(std::string_view name, std::string_view description) {
  return {name, "on", description, {"on", "off"}};
}

absl::StatusOr<bool> AsyncCollectives(hlo::Module& module, const PassContext& context,
                                      const OptionValues& options) {
  return MakeCollectivesAsync(
      module, context,
      {On(options, "permutes"), On(options, "all-gathers"), On(options, "offload")});
}

absl::StatusOr<bool> Fusion(hlo::Module& module, const PassContext& context,
                            const OptionValues& options) {
  return Fuse(module, context, {On(options, "producers"), On(options, "results")});
}

absl::StatusOr<bool> RematerializeOver(hlo::Module& module, const PassContext& context,
                                       const OptionValues& options) {
  const std::string& text = options.find("percent")->second;
  int64_t percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc() || end != text.data() + text.size() || percent < 0) {
    return UserError("rematerialize{percent=" + text + "}: not a number of percents");
  }
  return Rematerialize(module, context, percent);
}

// In the order in which they run by default.
std::vector<Pass> Table() {
  return {
      {"state-arguments", "Writes down where arguments lie and which are donated", Phase::kAnnotate,
       Plain<StateArguments>},
      {"state-ragged-sizes",
       "Writes group sizes, as --ragged and --routing state them, onto ragged operations",
       Phase::kAnnotate, Plain<StateRaggedSizes>},
      {"state-kernel-costs",
       "Writes what opaque kernels cost, as --kernel-cost states it, onto their calls",
       Phase::kAnnotate, Plain<StateKernelCosts>},
      {"state-trip-counts",
       "Writes how often loops of linear algebra iterate, as theory has it, onto them",
       Phase::kAnnotate, Plain<StateTripCounts>},
      {"state-branches", "Writes which branch is taken, as --branch states it, onto conditionals",
       Phase::kAnnotate, Plain<StateBranches>},
      {"join-slices", "Makes a program of all slices of a module compiled for one", Phase::kRead,
       Plain<JoinSlices>},
      {"flatten-fusions", "Puts fusions inside of fusions of a compiled module into these",
       Phase::kRead, Plain<FlattenFusions>},
      {"translate-calls", "Makes operations of the calls of the compiler's own routines",
       Phase::kRead, Plain<TranslateCalls>},
      {"unwrap-off-loads", "Makes collectives of the calls of SparseCores of a compiled module",
       Phase::kRead, Plain<UnwrapOffLoads>},
      {"unwrap-reduce-scatters",
       "Makes reduce-scatters of what a compiled module has as fusions of all-reduces",
       Phase::kRead, Plain<UnwrapReduceScatters>},
      {"join-carried-collectives",
       "Makes start and done of collectives that kernels of a compiled module carry", Phase::kRead,
       Plain<JoinCarriedCollectives>},
      {"begin-prefetched", "Has arrays in VMEM that a compiled module prefetches across programs",
       Phase::kRead, Plain<BeginPrefetched>},
      {"take-estimates",
       "Has kernels take as long as the compiler says, with --kernel-time compiler", Phase::kRead,
       Plain<TakeEstimates>},
      {"memory-spaces", "Says of every value whether it is in the memory of the host",
       Phase::kOptimize, Plain<AssignMemorySpaces>},
      {"repeat-all-gathers", "Gathers weights again that are needed again much later",
       Phase::kOptimize, Plain<RepeatAllGathers>},
      {"windowed-einsum",
       "Makes products and their collectives loops that compute while shards travel",
       Phase::kOptimize, Plain<MakeWindowedEinsums>},
      {"round-before-exchange",
       "Moves bfloat16 between devices where products would round float32 afterwards",
       Phase::kOptimize, Plain<RoundBeforeExchange>},
      {"expand-stable-sorts", "Has stable sorts move the positions of their elements along",
       Phase::kOptimize, Plain<ExpandStableSorts>},
      {"simplify", "Removes what computes nothing new", Phase::kOptimize, Plain<Simplify>},
      {"scatter-all-reduces", "Sums only the part of an all-reduce that a device reads",
       Phase::kOptimize, Plain<ScatterAllReduces>},
      {"hoist-invariants", "Computes before a loop what all its iterations compute alike",
       Phase::kOptimize, Plain<HoistInvariants>},
      {"pipeline-host-copies",
       "Moves what loops read of the host an iteration early, what they write there one late",
       Phase::kOptimize, Plain<PipelineHostCopies>},
      {"sink-all-reduces", "Adds up over devices behind a loop what its iterations added up",
       Phase::kOptimize, Plain<SinkAllReduces>},
      {"reassociate-all-reduces", "Adds up before an all-reduce what was added up after several",
       Phase::kOptimize, Plain<ReassociateAllReduces>},
      {"layout",
       "Makes reshapes and transposes that move nothing bitcasts",
       Phase::kOptimize,
       Plain<AssignLayouts>,
       {},
       /*keeps_facts=*/false,
       /*begins_kernels=*/true},
      {"narrow-reduce-scatters",
       "Makes all-reduces of reduce-scatters of integers, or that leave few bytes in a row",
       Phase::kOptimize, Plain<WidenNarrowReduceScatters>},
      {"narrow-all-gathers",
       "Makes all-reduces of all-gathers of vectors with less than a row of lanes per device",
       Phase::kOptimize, Plain<SumNarrowAllGathers>},
      {"combine-reduce-scatters",
       "Makes one reduce-scatter of those that a kernel can hold in VMEM", Phase::kOptimize,
       Plain<CombineReduceScatters>},
      {"combine-all-reduces", "Makes one all-reduce of those that do not wait for one another",
       Phase::kOptimize, Plain<CombineAllReduces>},
      {"sink-initializers", "Moves constant initial values into the loops that add to them",
       Phase::kOptimize, Plain<SinkInitializers>},
      {"fusion",
       "Puts operations together that run as one kernel",
       Phase::kOptimize,
       Fusion,
       {Switch("producers", "values that are computed in the kernels that use them"),
        Switch("results", "kernels with several results")}},
      {"copies", "Copies values that execution in place would destroy", Phase::kOptimize,
       Plain<InsertCopies>},
      {"async-collectives",
       "Cuts collectives that run beside compute into start and done",
       Phase::kOptimize,
       AsyncCollectives,
       {Switch("permutes", "collective-permutes"), Switch("all-gathers", "all-gathers"),
        Switch("offload", "what the chip's SparseCores run")}},
      {"async-host-copies", "Cuts transfers to and from host memory into start and done",
       Phase::kOptimize, Plain<MakeHostCopiesAsync>},
      {"schedule",
       "Orders the instructions so that transfers hide under compute",
       Phase::kSchedule,
       Plain<Schedule>,
       {},
       /*keeps_facts=*/true},
      {"demote-async", "Makes asynchronous collectives that nothing covers synchronous again",
       Phase::kSchedule, Plain<DemoteAsync>},
      {"rematerialize",
       "Computes values again where keeping them takes more memory than there is",
       Phase::kSchedule,
       RematerializeOver,
       {{"percent", "0", "of the usable HBM that may be live; 0: as the chip's compiler has it"}},
       /*keeps_facts=*/true},
      {"expand-barriers", "Takes optimization barriers out, behind which arrays may lie anywhere",
       Phase::kSchedule, Plain<ExpandBarriers>},
      {"memory-space-assignment", "Places arrays in VMEM or CMEM, with copies from and to HBM",
       Phase::kSchedule, Plain<AssignMemory>},
  };
}

// Returns the names of the passes of the wanted phases, in order.
std::string NamesOf(bool (*wanted)(Phase)) {
  std::vector<std::string_view> names;
  for (const Pass& pass : AllPasses()) {
    if (wanted(pass.phase)) names.push_back(pass.name);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace

const std::vector<Pass>& AllPasses() {
  static const auto* const table = new std::vector<Pass>(Table());
  return *table;
}

const Pass* FindPass(std::string_view name) {
  const auto found = std::ranges::find(AllPasses(), name, &Pass::name);
  return found == AllPasses().end() ? nullptr : &*found;
}

std::string DefaultPipeline() {
  return NamesOf([](Phase phase) { return phase != Phase::kAnnotate && phase != Phase::kRead; });
}

std::string CompiledPipeline() {
  return NamesOf([](Phase phase) { return phase == Phase::kRead; });
}

}  // namespace tpusim::passes

#include "workloads/lowering/custom_cost.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <cstdio>

#include "configs/status_macros.h"
#include "workloads/hlo/attributes.h"
#include "workloads/hlo/cost.h"
#include "workloads/hlo/opcode.h"

namespace tpusim::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr char kStated[] = "tpusim.kernel_cost";  // "flops,transcendentals,bytes"

// The last part of "jit(f)/layer/flash_attention".
std::string LastOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace

absl::StatusOr<CustomCost> CustomCostOf(const Instruction& call) {
  if (const auto stated = hlo::FrontendAttribute(call, kStated)) {
    long long flops = 0, transcendentals = 0, bytes = 0;
    if (std::sscanf(stated->c_str(), "%lld,%lld,%lld", &flops, &transcendentals, &bytes) == 3) {
      return CustomCost{Flops(flops), Flops(transcendentals), Bytes(bytes)};
    }
  }
  if (const auto carried = hlo::CarriedCost(call)) {
    return CustomCost{carried->flops, carried->transcendentals,
                      carried->bytes_read + carried->bytes_written};
  }
  return NoRule(
      fmt::format("no kernel for {}: custom call to '{}' has no cost; state it with --kernel-cost "
                  "{}=FLOPS,BYTES",
                  call.Describe(), call.attrs().custom_call_target(), call.name()));
}

std::vector<int64_t> StateCustomCosts(hlo::Module& module, const std::vector<StatedCost>& costs) {
  std::vector<int64_t> uses(costs.size(), 0);
  if (costs.empty()) return uses;
  for (hlo::Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (i->opcode() != Opcode::kCustomCall) continue;
      const std::string kernel = hlo::FrontendAttribute(*i, "kernel_name").value_or("");
      for (size_t n = 0; n < costs.size(); ++n) {
        const StatedCost& stated = costs[n];
        const auto matches = [&](const std::string& name) {
          return !name.empty() && fnmatch(stated.name.c_str(), name.c_str(), 0) == 0;
        };
        if (!matches(i->name()) && !matches(kernel) && !matches(LastOf(i->op_name()))) continue;
        hlo::SetFrontendAttribute(
            i, kStated,
            fmt::format("{},{},{}", stated.cost.flops.value(), stated.cost.transcendentals.value(),
                        stated.cost.bytes.value()));
        ++uses[n];
        break;
      }
    }
  }
  return uses;
}

bool IsTopKCall(const Instruction& i) {
  if (i.opcode() != Opcode::kCustomCall) return false;
  const std::string& target = i.attrs().custom_call_target();
  return target == "TopK" || target == "ApproxTopK";
}

bool IsPartialReduceCall(const Instruction& i) {
  return i.opcode() == Opcode::kCustomCall && i.attrs().custom_call_target() == "PartialReduce";
}

}  // namespace tpusim::lowering

#include "workloads/hlo/rules/host_callback.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {
namespace {

constexpr std::string_view kTargets[] = {
    kHostExecute,
    "tpusim.host_callback",
    "xla_ffi_python_cpu_callback",
    "xla_ffi_partitioned_python_cpu_callback",
    "xla_python_cpu_callback",
};

}  // namespace

bool IsHostCallback(const Instruction& instruction) {
  return instruction.opcode() == Opcode::kCustomCall &&
         std::ranges::find(kTargets, instruction.attrs().custom_call_target()) !=
             std::end(kTargets);
}

}  // namespace tpusim::hlo

#include "workloads/hlo/analysis/compiled.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "workloads/hlo/ir/opcode.h"

namespace tpusim::hlo {
namespace {

struct Sign {
  std::string_view text;  // in a backend config, or where the target of a custom call begins
  std::string_view processors;
};

// XLA's own names: of the CPU compiler how it divides loops among threads, and its libraries; of
// the GPU compiler streams, the settings of fusions and products, and its libraries.
constexpr Sign kSigns[] = {
    {"\"outer_dimension_partitions\"", "CPUs"},
    {"__ynn", "CPUs"},
    {"__xnn", "CPUs"},
    {"__onednn", "CPUs"},
    {"\"operation_queue_id\"", "GPUs"},
    {"\"fusion_backend_config\"", "GPUs"},
    {"\"gemm_backend_config\"", "GPUs"},
    {"__triton", "GPUs"},
    {"__cublas$", "GPUs"},
    {"__cudnn$", "GPUs"},
};

}  // namespace

OtherTarget CompiledForOther(const Module& module) {
  for (const Computation* computation : module.computations()) {
    for (const Instruction* i : computation->instructions()) {
      const std::string_view config = i->attrs().backend_config();
      const std::string_view target = i->attrs().custom_call_target();
      if (config.empty() && target.empty()) continue;
      for (const Sign& sign : kSigns) {
        if (config.find(sign.text) != std::string_view::npos || target.starts_with(sign.text)) {
          return {sign.processors, i};
        }
      }
    }
  }
  return {};
}

bool IsCompiled(const Module& module) {
  if (module.entry() == nullptr || module.entry()->schedule().empty()) return false;
  bool tiled = false, has_kernels = false;
  for (const Computation* computation : module.computations()) {
    for (const Instruction* i : computation->instructions()) {
      if (i->attrs().backend_config().find("\"flag_configs\"") != std::string::npos) return true;
      tiled |= !i->shape().layout.tiles.empty();
      has_kernels |= RunsAsKernel(i->opcode()) || IsElementwise(i->opcode());
    }
  }
  return tiled && !has_kernels;
}

// Read without a parser of JSON: every instruction is asked, and few say anything.
std::vector<StatedAlias> StatedAliases(const Instruction& instruction) {
  std::vector<StatedAlias> aliases;
  std::string_view text = instruction.attrs().backend_config();
  constexpr std::string_view kBegin = R"("aliasing_operands":{"lists":[)", kList = R"("indices":[)";
  const size_t begin = text.find(kBegin);
  if (begin == std::string_view::npos) return aliases;
  text.remove_prefix(begin + kBegin.size());
  text = text.substr(0, text.find("]}]"));
  const auto operands = std::ssize(instruction.operands());
  for (size_t at = text.find(kList); at != std::string_view::npos; at = text.find(kList)) {
    text.remove_prefix(at + kList.size());
    int64_t operand = operands;
    for (std::string_view numbers = text.substr(0, text.find(']'));;) {
      const size_t digit = numbers.find_first_of("0123456789");
      if (digit == std::string_view::npos) break;
      numbers.remove_prefix(digit);
      int64_t index = 0;
      const char* const end = numbers.data() + numbers.size();
      const auto [after, error] = std::from_chars(numbers.data(), end, index);
      if (error != std::errc()) return {};
      numbers.remove_prefix(after - numbers.data());
      if (index < operands) {
        operand = std::min<int64_t>(operand, index);
      } else if (operand < operands) {
        aliases.push_back({operand, index - operands});
      }
    }
  }
  return aliases;
}

}  // namespace tpusim::hlo

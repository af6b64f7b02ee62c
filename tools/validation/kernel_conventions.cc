#include "tools/validation/kernel_conventions.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "models/timing/kernel_steps.h"
#include "models/timing/kernel_timing.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"

namespace tpusim::validation {
namespace {

using hlo::Shape;
using Json = nlohmann::ordered_json;

constexpr double kRelayoutCycles = 100;  // per step, whatever its size
constexpr double kPacking = 4;           // bytes per element of a narrow result

bool IsProduct(const Json& row) { return !row["convs"].empty(); }
// Running sums along a major dimension: emitted like a product.
bool IsScan(const Json& row) { return row["ops"].contains("reduce-window"); }

double BytesPerElement(const Shape& shape) {
  return static_cast<double>(hlo::BitWidth(shape.element_type)) / 8;
}

void Scale(isa::Window& window, double share) {
  window.bytes = timing::Scaled(window.bytes, share);
}

void ChargeInput(const Json& row, const Operand& input, const Conventions& conventions,
                 isa::Window& window) {
  if (IsProduct(row)) {
    if (input.cmem) Scale(window, conventions.cmem_share);
    return;
  }
  if (MovesLanes(row)) {
    if (IsNarrow(input.logical)) Scale(window, 4 / BytesPerElement(input.logical));
  } else if (input.fast && !input.cmem) {
    Scale(window, conventions.vmem_share);
  }
  // What is padded takes a window halfway between its size and the result's.
  if (row["ops"].contains("pad")) {
    const auto size = static_cast<double>(input.physical.ElementCount());
    const auto padded =
        static_cast<double>(ParseOperand(row["outputs"][0]).physical.ElementCount());
    if (size > 1 && padded > size) Scale(window, (1 + padded / size) / 2);
  }
}

void ChargeResult(const Json& row, const Operand& result, isa::Window& window) {
  // CMEM costs loop fusions what HBM does.
  const bool free = result.fast && !(result.cmem && !IsProduct(row));
  if (!free) window.space = isa::MemorySpace::kHbm;
  if (!IsNarrow(result.logical)) return;
  const double own = BytesPerElement(result.logical);
  const double packing = MovesLanes(row) ? (free ? 0 : 4 - own) : kPacking;
  if (packing <= 0) return;
  Scale(window, (packing + (free ? 0 : own)) / own);
  window.space = isa::MemorySpace::kHbm;
}

}  // namespace

bool IsNarrow(const Shape& shape) {
  return BytesPerElement(shape) > 0 && BytesPerElement(shape) < 4;
}

Operand ParseOperand(const Json& json) {
  Operand operand;
  const auto type = hlo::PrimitiveTypeFromName(json[0].get<std::string>());
  operand.logical =
      hlo::MakeShape(type.value_or(hlo::PrimitiveType::kF32), json[1].get<std::vector<int64_t>>());
  operand.physical = operand.logical;
  const std::string layout = json[2].get<std::string>();
  std::vector<int64_t> minor_to_major;
  for (size_t at = 0; at < layout.size() && layout[at] != ':'; ++at) {
    if (std::isdigit(static_cast<unsigned char>(layout[at])) == 0) continue;
    minor_to_major.push_back(layout[at] - '0');
  }
  const size_t rank = operand.logical.dims.size();
  if (minor_to_major.size() == rank) {
    for (size_t d = 0; d < rank; ++d) {
      operand.physical.dims[rank - 1 - d] = operand.logical.dims[minor_to_major[d]];
    }
    if (rank > 0) operand.minor = minor_to_major[0];
  }
  operand.fast = json.size() > 3 && json[3].get<std::string>() != "HBM";
  operand.cmem = json.size() > 3 && json[3].get<std::string>() == "CMEM";
  return operand;
}

bool MovesLanes(const Json& row) {
  if (row["opcode"] != "copy" || row["inputs"].empty()) return false;
  const Operand in = ParseOperand(row["inputs"][0]), out = ParseOperand(row["outputs"][0]);
  return in.logical.dims == out.logical.dims && in.minor != out.minor;
}

bool Counts(const Json& row, const Operand& input, const Conventions& conventions) {
  if (!input.fast) return true;
  if (IsProduct(row)) return input.cmem && conventions.cmem_share > 0;
  if (conventions.loop_step_cycles <= 0) return false;
  if (row["opcode"] == "copy") return input.cmem;
  return input.cmem || (conventions.vmem_share > 0 && !IsScan(row));
}

void ChargeWindows(const hlo::Instruction& fusion, const Json& row, const Conventions& conventions,
                   isa::Kernel& kernel) {
  if (conventions.loop_step_cycles <= 0) return;
  size_t result = 0;
  for (isa::Window& w : kernel.windows) {
    if (w.kind == isa::WindowKind::kOutput) {
      if (result < row["outputs"].size()) {
        ChargeResult(row, ParseOperand(row["outputs"][result++]), w);
      }
      continue;
    }
    for (const hlo::Instruction* operand : fusion.operands()) {
      if (operand->name() != w.operand || operand->opcode() != hlo::Opcode::kParameter) continue;
      const auto& input = row["inputs"][operand->attrs().parameter_number()];
      ChargeInput(row, ParseOperand(input), conventions, w);
      break;
    }
  }
  if (IsProduct(row) || !row["ops"].contains("reduce")) return;
  // A reduction writes its largest operand once more, 32 bits wide.
  double most = 0;
  for (const Json& input : row["inputs"]) {
    most = std::max(most, static_cast<double>(ParseOperand(input).physical.ElementCount()));
  }
  isa::Window unpacked;
  unpacked.kind = isa::WindowKind::kOutput;
  unpacked.moves_with = 1;
  unpacked.bytes = Bytes(static_cast<int64_t>(4 * most / static_cast<double>(kernel.Steps())));
  kernel.windows.push_back(unpacked);
}

bool OnlyWrites(const Json& row, const Conventions& conventions) {
  if (!IsProduct(row) || conventions.loop_step_cycles <= 0) return false;
  return std::none_of(row["inputs"].begin(), row["inputs"].end(), [&](const Json& input) {
    const Operand operand = ParseOperand(input);
    return operand.logical.ElementCount() > 1 && Counts(row, operand, conventions);
  });
}

bool IsSerial(const Json& row, const Conventions& conventions, const isa::Kernel& kernel) {
  if (conventions.loop_step_cycles <= 0) return false;
  if (!IsProduct(row) || OnlyWrites(row, conventions)) return true;
  return IsScan(row) && kernel.block.latency > Cycles(0);
}

double SerialTime(const configs::ChipParams& chip, const Json& row, const Conventions& conventions,
                  const isa::Kernel& kernel) {
  const timing::KernelTraffic traffic = timing::TrafficOf(kernel);
  const double bytes = static_cast<double>((traffic.read + traffic.written).value());
  const auto steps = static_cast<double>(kernel.Steps());
  isa::Block block = kernel.block;
  // What a row's maximum keeps waiting is not priced.
  if (IsProduct(row)) block.latency = Cycles(0);
  double compute = ToSeconds(timing::StepTime(chip, block)) * chip.clock.value();
  for (const isa::GridDim& d : kernel.grid) {
    compute *= static_cast<double>(d.count - 1) + d.last_fraction;
  }
  double waits = !row["inputs"].empty() || bytes > 0 ? 1 : 0;
  if (IsScan(row) && bytes == 0) waits = 0;
  if (MovesLanes(row)) {
    compute = kRelayoutCycles * steps;
    waits = 0;
    for (const char* side : {"inputs", "outputs"}) {
      const Operand operand = ParseOperand(row[side][0]);
      if (!operand.fast) waits += 1;
    }
    return steps * waits * conventions.loop_step_cycles + bytes / conventions.loop_bytes_per_cycle +
           compute;
  }
  const double data = bytes / conventions.loop_bytes_per_cycle;
  if (IsProduct(row) && OnlyWrites(row, conventions) && !IsScan(row)) {
    // The result of one step leaves, and the next waits, while the one after computes.
    const double step = std::max(compute, data + steps * conventions.loop_step_cycles) / steps;
    return compute / steps + (steps - 1) * step + data / steps;
  }
  if (IsProduct(row)) return steps * conventions.loop_step_cycles + data + compute;
  // One step has nothing to overlap with.
  const double busy = steps > 1 ? std::max(data, compute) : data + compute;
  return steps * waits * conventions.loop_step_cycles + busy;
}

}  // namespace tpusim::validation

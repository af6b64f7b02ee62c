// The rows of the compiler in the table of parameters: units, ranges and members of the values that
// configs/compilers/NAME.json gives.
#include "configs/parameter_row.h"

namespace tpusim::configs {
namespace {

constexpr Range kFlag = {0, 1};
constexpr Range kBytesOrMinusOne = {-1, 1e18};
constexpr Range kPercent = {1, 100};
constexpr Range kTransfers = {0, 1 << 20};

}  // namespace

#define VALUE(name, unit, range, description) \
  TPUSIM_PARAMETER("compiler." #name, unit, range, compiler.name, description)
#define FLAG(name, description) VALUE(name, "flag", kFlag, description)

std::vector<Parameter> PolicyParameters() {
  std::vector<Parameter> table = {
      // clang-format off
      VALUE(offload_least_bytes, "bytes", kBytesOrNone, "least operand of a collective that a flag sends to SparseCores"),
      VALUE(permutes_in_flight, "count", kTransfers, "collective-permutes that may be in flight"),
      VALUE(gathers_in_flight, "count", kTransfers, "asynchronous all-gathers that may be in flight; 0: they are synchronous"),
      VALUE(copies_in_flight, "count", kTransfers, "copies between memories of the chip that may be in flight"),
      VALUE(host_copies_in_flight, "count", kTransfers, "copies to the host, and from it, that may be in flight"),
      VALUE(scheduled_percent, "percent", kPercent, "share of the usable HBM above which the scheduler orders for less memory"),
      VALUE(rematerialized_percent, "percent", kPercent, "share of the usable HBM above which values are computed again"),
      VALUE(windowed_flops_per_byte, "flops_per_byte", kCountOrNone, "FLOPs per byte of the whole array, times two over the group's size, of a windowed einsum; 0: there are none"),
      FLAG(windowed_gathers, "an all-gather and its product may become a windowed einsum"),
      FLAG(windowed_scatters, "a product and its reduce-scatter may become a windowed einsum"),
      VALUE(windowed_least_bytes, "bytes", kBytesOrMinusOne, "least array of a windowed einsum, whatever its FLOPs per byte; -1: those decide"),
      FLAG(products_in_vmem, "results of matrix products may live in VMEM"),
      VALUE(window_registers, "registers", kCount, "largest window of a kernel without a product, per core"),
      VALUE(relayout_window_registers, "registers", kCount, "... of one that puts data through the cross-lane units"),
      VALUE(lone_window_registers, "registers", kCount, "... of one operation whose larger windows do not fit sixteen times"),
      VALUE(uncut_bytes, "bytes", kBytesOrNone, "largest operand or result of such a kernel that is never cut"),
      // clang-format on
  };
  for (Parameter& parameter : table) {
    if (parameter.unit == kFlagUnit) parameter.words = {"false", "true"};
  }
  return table;
}

#undef FLAG
#undef VALUE

}  // namespace tpusim::configs

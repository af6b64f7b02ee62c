// What the TPU compiler does where costs do not decide.
//
// Limits, thresholds and choices that were read off programs it compiled, or off its flags. Each is
// a row of configs/compilers/NAME.json, with the program that told, the nearest values that were
// seen to behave otherwise, and the compiler's flag if it has one; policy_schema.cc binds the rows
// to these members. `tpusim configs CHIP --compiler` prints them all, --set compiler.NAME=VALUE
// and --xla-flags override them. A pass asks target::Target::policy() and has no such number of
// its own: limits of effort are the passes' own matter.
#ifndef TPUSIM_CONFIGS_POLICY_H_
#define TPUSIM_CONFIGS_POLICY_H_

#include <cstdint>
#include <string>

#include "configs/units.h"

namespace tpusim::configs {

struct Policy {
  // The chip whose compiled programs say which collective algorithms are chosen
  // (workloads/collectives/choice_table.h); "": the fastest are.
  std::string like;

  // --- Collectives ---
  // The least operand of a collective that a flag sends to the SparseCores.
  Bytes offload_least_bytes;

  // --- Scheduling ---
  // How many transfers of a kind the scheduler lets be in flight. With no gathers in flight all
  // all-gathers are synchronous that no SparseCore runs.
  int64_t permutes_in_flight = 0, gathers_in_flight = 0, copies_in_flight = 0;
  int64_t host_copies_in_flight = 0;  // to and from the host
  // How much of the usable HBM may be live: the scheduler orders otherwise for less, and then
  // values are computed again.
  int64_t scheduled_percent = 0, rematerialized_percent = 0;

  // --- Windowed einsums (passes/collectives/windowed_einsum.h) ---
  // A product and its collective become one where the product has this many FLOPs per byte of the
  // whole array, times two over the group's size; 0: never. Not on slices where permutes are
  // synchronous.
  int64_t windowed_flops_per_byte = 0;
  bool windowed_gathers = false, windowed_scatters = false;  // the two forms
  // Arrays of at least this size become one whatever that ratio; -1: the ratio decides.
  Bytes windowed_least_bytes;

  // --- Kernels and memory spaces ---
  // Whether arrays that a matrix product makes may live in VMEM; others may.
  bool products_in_vmem = false;
  // Registers per core that a window of a kernel without a product does not exceed, however
  // much of VMEM is free: of any; of one that puts data through the cross-lane units; of a
  // single operation whose larger windows do not fit sixteen times.
  int64_t window_registers = 0, relayout_window_registers = 0, lone_window_registers = 0;
  // An operand or result of such a kernel up to this size is not cut.
  Bytes uncut_bytes;
};

}  // namespace tpusim::configs

#endif  // TPUSIM_CONFIGS_POLICY_H_

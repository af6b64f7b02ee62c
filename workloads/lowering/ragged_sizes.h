// Group sizes of ragged operations, which are data.
//
// A ragged dot multiplies runs of rows by a matrix each; a ragged all-to-all
// sends every member of its group a run of rows. How long the runs are is only
// known when the program runs. By default all are equal, and those of an all-to-all
// no more rows together than its result holds; the assumption is listed. The user
// can give them. They are written onto the instruction, where costs and the lowering
// read them.
#ifndef TPUSIM_WORKLOADS_LOWERING_RAGGED_SIZES_H_
#define TPUSIM_WORKLOADS_LOWERING_RAGGED_SIZES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::lowering {

// `sizes` are rows, or shares of all rows if `shares` is set; none: all equal.
struct RaggedOverride {
  std::string name;  // of an instruction; may be a glob
  std::vector<double> sizes;
  bool shares = false;
};

// "NAME=s0,s1,...": rows, or shares of them if one has a decimal point; or
// "NAME=uniform". nullopt: none of these.
std::optional<RaggedOverride> ParseRaggedOverride(const std::string& text);

struct RaggedNotes {
  std::vector<std::string> assumptions;
  std::vector<std::string> warnings;  // overrides that no operation matches
};

// Writes sizes onto the ragged operations of a per-device module; the first
// override that matches wins.
//
// Sizes of a ragged dot are those of the whole program. Where its groups or its
// rows are divided among devices, the one with most rows to multiply counts for
// all, as the others wait for it. Sizes of a ragged all-to-all are what each
// device sends to the members of its group.
//
// Errors: another number of sizes than groups; more rows than there are.
absl::StatusOr<RaggedNotes> SetRaggedSizes(hlo::Module& module, int64_t partitions,
                                           const std::vector<RaggedOverride>& overrides);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_RAGGED_SIZES_H_

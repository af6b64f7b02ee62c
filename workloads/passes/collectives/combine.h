// Makes one collective of many: the bookkeeping of the passes that do.
//
// Those of a kind fall into levels, as late in the program as what waits for them allows: the sums
// that nothing waits for are one level, however early they could be done. Of the TPU compiler, two
// small cases say so: of a = R(x), b = R(f(a)), c = R(g(x)) it makes {b, c} and a; of the sums of a
// sharded cross entropy, it joins the label's logit, of which only the loss is made, with the
// gradient. Within a level each joins, in the order of the program, the first batch with room, else
// begins a new one. Kinds may wait for one another crosswise; a level is where that leaves no
// cycle.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "configs/record.h"
#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"
#include "workloads/passes/pipeline/pass.h"

namespace tpusim::passes {

struct CombineRule {
  // Only what gives the same becomes one; "": never.
  std::function<std::string(const hlo::Instruction&)> kind;
  // Bytes of one collective that count against the limit.
  std::function<Bytes(const hlo::Instruction&)> bytes;
  Bytes most_bytes{0};
  size_t most_arrays = 0;
  // Makes one of at least two.
  std::function<void(const std::vector<hlo::Instruction*>&)> combine;
};

// In all that runs as control flow; records say of each that it was done, with `reason`.
bool CombineCollectives(const hlo::Module& module, const PassContext& context,
                        const CombineRule& rule, const Reason& reason);

// A collective of the operands of all members, like the first; its results, one by one.
std::vector<hlo::Instruction*> AddCombined(const std::vector<hlo::Instruction*>& members,
                                           const std::vector<hlo::Instruction*>& operands,
                                           const std::vector<hlo::Shape>& results);

// Returns a key that is equal for all-reduces and reduce-scatters that do the same to other arrays.
//
// Equal for all-reduces of one array with the same groups, reduction and element type; empty for
// all other instructions, and for all-reduces that control edges hold in place.
std::string AllReduceKind(const hlo::Instruction& instruction);

// Returns such a key of a reduce-scatter, whatever the dimension that it scatters.
std::string ReduceScatterKind(const hlo::Instruction& instruction);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_H_

// Makes one collective of many: the bookkeeping of the passes that do.
//
// In the order of the program each joins the first batch of its kind with room, else begins a new
// one. Where one has to wait for a member of a batch, by whatever way, that batch and those of its
// kind before it are closed, so that nothing in the end waits for itself.
#ifndef TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_H_
#define TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "configs/units.h"
#include "workloads/hlo/ir/ir.h"

namespace tpusim::passes {

struct CombineRule {
  // Only what gives the same becomes one; "": never.
  std::function<std::string(const hlo::Instruction&)> kind;
  // What one counts against the limit.
  std::function<Bytes(const hlo::Instruction&)> bytes;
  Bytes most_bytes{0};
  size_t most_arrays = 0;
  // Makes one of at least two.
  std::function<void(const std::vector<hlo::Instruction*>&)> combine;
};

bool CombineCollectives(hlo::Computation& computation, const CombineRule& rule);

// A collective of the operands of all members, like the first; its results, one by one.
std::vector<hlo::Instruction*> AddCombined(const std::vector<hlo::Instruction*>& members,
                                           const std::vector<hlo::Instruction*>& operands,
                                           const std::vector<hlo::Shape>& results);

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_COLLECTIVES_COMBINE_H_

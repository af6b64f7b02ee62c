// Lower bounds of time and memory of all candidates below a partial choice, from rates alone.
//
// An axis of the mesh splits a product if it splits one of its dimensions; each splits one at most.
// So a product takes at least its time on one device, divided by the sizes of all axes that could
// split any of its dimensions: those of decisions that are made, and any that decisions which are
// open may still choose. Products run one after another. Beside them, arguments that are read from
// end to end come from HBM; what splits them where they are used may be more than what splits them
// as arguments. Arguments take memory likewise.
#ifndef TPUSIM_WORKLOADS_SEARCH_RATE_BOUND_H_
#define TPUSIM_WORKLOADS_SEARCH_RATE_BOUND_H_

#include <cstdint>
#include <vector>

#include "configs/units.h"
#include "workloads/search/program.h"
#include "workloads/search/space.h"
#include "workloads/sharding/stated/stated_constraints.h"

namespace tpusim::search {

class RateBound {
 public:
  // Bounds a variant of the program. Both must live as long. `stated`: constraints beside those of
  // candidates, whose axes may split anything.
  RateBound(const Program& program, const Space& space, size_t variant = 0,
            const std::vector<sharding::StatedConstraint>& stated = {});

  // Return the bounds of all candidates on the mesh whose first decisions are these.
  Picoseconds Time(size_t mesh, const std::vector<AxisSet>& decided) const;
  Bytes Memory(size_t mesh, const std::vector<AxisSet>& decided) const;

 private:
  // Products, or arguments, that the same decisions can split.
  struct Group {
    std::vector<int32_t> decisions;  // of the space
    double amount = 0;               // seconds, or bytes
    std::vector<AxisSet> stated;     // by mesh, axes that the program itself states
  };
  double Least(const std::vector<Group>& groups, size_t mesh,
               const std::vector<AxisSet>& decided) const;

  const Space& space_;
  std::vector<Group> products_, reads_, arguments_;
  std::vector<std::vector<AxisSet>> any_;  // by mesh, by decision: axes of any choice
};

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_RATE_BOUND_H_

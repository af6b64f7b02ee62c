// Which algorithms could serve a group, and which is fastest by its closed form.
#ifndef TPUSIM_WORKLOADS_LOWERING_COLLECTIVES_CHOICE_H_
#define TPUSIM_WORKLOADS_LOWERING_COLLECTIVES_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/config.h"
#include "models/timing/collective_timing.h"
#include "workloads/lowering/collective.h"
#include "workloads/lowering/collectives/box.h"
#include "workloads/lowering/collectives/plan.h"

namespace tpusim::lowering {

// Groups of one request that lie in the torus in the same way; all groups that
// are no box are of one form.
struct GroupForm {
  std::optional<Box> box;      // of the first group
  std::vector<size_t> groups;  // indices into the request, ascending
};
std::vector<GroupForm> FormsOf(const configs::Topology& topology,
                               const std::vector<std::vector<int64_t>>& groups);

// One algorithm for the groups of one form.
struct Candidate {
  std::string algorithm;  // "bidirectional ring of 16 over y"
  Plan plan;
  Picoseconds expected;
  // For lanes that lie on no axis: the members of each group of the form in the
  // order of the lane.
  std::vector<std::vector<int64_t>> lists;
};

// All that apply, in the fixed order that breaks ties. Never empty.
std::vector<Candidate> CandidatesFor(const configs::Config& config,
                                     const CollectiveRequest& request, const GroupForm& form);
// The first of the fastest.
Candidate Choose(const configs::Config& config, const CollectiveRequest& request,
                 const GroupForm& form);

// Position of every member (in group order) of a group of the form.
std::vector<Position> PositionsOf(const configs::Topology& topology, const GroupForm& form,
                                  const Candidate& candidate, size_t group_of_form,
                                  const std::vector<int64_t>& group);

// What no algorithm can beat for the groups of the form, all at once, with `v` bytes
// (V of the formulas in models/timing/collective_timing.h) each.
Picoseconds BoundOf(const configs::Config& config, const CollectiveRequest& request,
                    const GroupForm& form, Bytes v);
// The same by what the slices have to exchange; 0 if all groups stay inside theirs.
Picoseconds DcnBoundOf(const configs::Config& config, const CollectiveRequest& request,
                       const GroupForm& form, Bytes v);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_COLLECTIVES_CHOICE_H_

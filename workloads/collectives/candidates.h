// The algorithms that could serve a group, each with its closed form.
//
// An algorithm has a family, the name by which one can ask for it:
//
//   ring, line                 both ways along one axis that closes, or does not
//   unidirectional-ring        two colors round one axis in opposite ways
//   rotated                    over several axes, as many colors as axes, which
//                              take the axes in turns; slices exchange in the middle
//   unidirectional-rotated     twice as many colors, half of them each way round
//   axis-by-axis               over several axes, one after the other
//   hamiltonian-ring           a cycle of neighbours through a box, both ways
//   unidirectional-hamiltonian-ring   the same as two colors in opposite ways
//   minimum-hop-ring           a tour through members that form no box
//   group-ring                 a ring through the members in the order of the group, neighbours
//                              or not
//   direct                     all-to-all straight to every destination
//   single-phase:F             a small all-reduce (compiler.single_phase_most_bytes): whole
//                              operands travel along F, and every member adds up all of them
//   as-all-reduce:F            an all-gather or a reduce-scatter done as an
//                              all-reduce along F, amid zeros or with a slice after
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_CANDIDATES_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_CANDIDATES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "configs/config.h"
#include "models/timing/collective_timing.h"
#include "workloads/collectives/box.h"
#include "workloads/collectives/collective.h"
#include "workloads/collectives/plan.h"

namespace tpusim::collectives {

// Groups of one request that lie in the torus in the same way; all groups that
// are no box are of one form.
struct GroupForm {
  std::optional<Box> box;      // of the first group
  std::vector<size_t> groups;  // indices into the request, ascending
  std::vector<Box> boxes;      // of each of them, if they are boxes
};
std::vector<GroupForm> FormsOf(const configs::Topology& topology,
                               const std::vector<std::vector<int64_t>>& groups);

// One algorithm for the groups of one form.
struct Algorithm {
  std::string family;
  std::string algorithm;  // "bidirectional ring of 16 over y"
  Plan plan;
  Picoseconds expected;
  // The members of each group of the form in the order of the dimension, where dimensions lie on no
  // axis.
  std::vector<std::vector<int64_t>> lists;
};

// Whether a family is of interest; what is not is not laid out either.
using Wanted = std::function<bool(std::string_view family)>;
inline bool Anything(std::string_view /*family*/) { return true; }

// Returns all candidates that apply, in the fixed order that breaks ties; never empty if anything
// is wanted. Families of as-all-reduce, which are never the fastest, are left out.
std::vector<Algorithm> CandidatesFor(const configs::Config& config,
                                     const CollectiveRequest& request, const GroupForm& form,
                                     const Wanted& wanted = Anything);
// The families of as-all-reduce; empty for other collectives.
std::vector<Algorithm> AllReducesFor(const configs::Config& config,
                                     const CollectiveRequest& request, const GroupForm& form,
                                     const Wanted& wanted = Anything);
// The family of group-ring, which is never faster than a ring of neighbours; empty for an
// all-to-all.
std::vector<Algorithm> GroupRingsFor(const configs::Config& config,
                                     const CollectiveRequest& request, const GroupForm& form,
                                     const Wanted& wanted = Anything);

// Names, as in the list above, without ":F".
const std::vector<std::string>& Families();
// Returns whether it is the name of a family, with or without ":F".
bool IsFamily(std::string_view name);

// Position of every member (in group order) of a group of the form.
std::vector<Position> PositionsOf(const configs::Topology& topology, const GroupForm& form,
                                  const Algorithm& candidate, size_t group_of_form,
                                  const std::vector<int64_t>& group);

// Returns the time that no algorithm can beat for the groups of the form, all at once, with `v`
// bytes (V of the formulas in models/timing/collective_timing.h) each.
Picoseconds BoundOf(const configs::Config& config, const CollectiveRequest& request,
                    const GroupForm& form, Bytes v);
// Returns the same bound by what the slices have to exchange; 0 if all groups stay inside theirs.
Picoseconds DcnBoundOf(const configs::Config& config, const CollectiveRequest& request,
                       const GroupForm& form, Bytes v);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_CANDIDATES_H_

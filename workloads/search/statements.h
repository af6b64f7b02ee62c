// A candidate as statements to the compiler: --mesh, --shard and --constrain.
//
// Every argument is stated, also those that are whole, so that nothing of the program's own
// shardings of arguments stays, and so are the constraints that it has, unless they are kept.
// Resolved conflicts are constraints where values are made that have both dimensions.
#ifndef TPUSIM_WORKLOADS_SEARCH_STATEMENTS_H_
#define TPUSIM_WORKLOADS_SEARCH_STATEMENTS_H_

#include <string>
#include <vector>

#include "workloads/search/program.h"
#include "workloads/search/space.h"
#include "workloads/sharding/stated/stated_constraints.h"

namespace tpusim::search {

struct Statements {
  MeshAxes mesh;
  std::vector<sharding::StatedConstraint> arguments, constraints;
  // The lines of the program that make the values of each constraint.
  std::vector<sharding::ConstraintPlace> places;
};

Statements StatementsOf(const Space& space, const Candidate& candidate);

// Returns what the program itself states of its arguments, on every mesh of the space of a variant,
// as far as decisions can say it.
std::vector<Candidate> OwnCandidates(const Space& space, const Program& program);

// "P('data', None)": a PartitionSpec, without whole dimensions at its end.
std::string SpecText(const std::vector<std::vector<std::string>>& dims);

// Returns all of a candidate in a line, which names it in a store and in messages.
std::string ToString(const Program& program, const Space& space, const Candidate& candidate);

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_STATEMENTS_H_

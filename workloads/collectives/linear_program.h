// A small linear program, solved by the simplex method on a dense table.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_LINEAR_PROGRAM_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_LINEAR_PROGRAM_H_

#include <vector>

namespace tpusim::collectives {

// Ways to do some work, of which each may do a part. `loads[w]` is how long way
// w keeps each of several servers busy if it does everything; servers come in
// groups of `group_size`, and a group takes as long as its busiest server. The parts, adding up
// to 1, for which the sum over the groups is least. Deterministic.
std::vector<double> LeastSumOfMaxima(const std::vector<std::vector<double>>& loads, int group_size);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_LINEAR_PROGRAM_H_

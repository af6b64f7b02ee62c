// The links that can limit transfers: those that no other link of the same ways always outdoes.
//
// A link that is crossed by some of the transfers that cross another one, by each of them no more
// often for its rate, is never fuller than that other link. If it is full the other one is full,
// too, and carries nothing else. So max-min fair rates (models/flow/max_min.h) are the same without
// it. Coarse classes (levels.h) put transfers on every link that one of their members crosses,
// dozens of which a few outdo.
#ifndef TPUSIM_SIM_SYMMETRY_LIMITING_LINKS_H_
#define TPUSIM_SIM_SYMMETRY_LIMITING_LINKS_H_

#include <vector>

#include "sim/symmetry/classes.h"

namespace tpusim::sim {

// Returns by class of links whether it can limit a transfer. `rates`: of a link of each class.
std::vector<bool> LimitingLinks(const std::vector<std::vector<RouteLoad>>& loads,
                                const std::vector<double>& rates);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_LIMITING_LINKS_H_

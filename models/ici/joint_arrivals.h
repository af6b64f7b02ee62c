// Arrivals from several classes of senders at one class of receivers.
//
// Where classes of devices are coarser than what they do (sim/symmetry/levels.h), some of the
// devices that one module represents receive from one class of senders over a route and others from
// another, yet every one of them receives the same number of transfers. So the transfers of those
// classes are one arrival: the n-th has come when the n-th of all of them has.
//
//   senders      A      B               arrival
//   A's first    1      0               -
//   A's second   2      0               -
//   B's first    2      1               1st
#ifndef TPUSIM_MODELS_ICI_JOINT_ARRIVALS_H_
#define TPUSIM_MODELS_ICI_JOINT_ARRIVALS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "models/steady/state.h"

namespace tpusim::ici {

class JointArrivals {
 public:
  // A transfer over the route for the flag, of one of so many classes of senders, has come.
  // Counts a transfer over the route for the flag, of one of so many classes of senders. Returns
  // whether it completes an arrival.
  bool Add(int32_t route, int32_t flag, int32_t sender, int32_t senders);

  void Visit(steady::StateVisitor& visitor);

 private:
  // Surplus by flag and route: how many more have come of each class than of the class with the
  // fewest. Pairs without a surplus are left out.
  std::map<std::pair<int32_t, int32_t>, std::vector<int64_t>> ahead_;
};

}  // namespace tpusim::ici

#endif  // TPUSIM_MODELS_ICI_JOINT_ARRIVALS_H_

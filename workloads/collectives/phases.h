// The phases of a plan, in which its colors travel side by side.
//
// In each phase every color takes one dimension. Colors that take the same dimension send their
// chunks together. The dimensions do not wait for each other within a phase: each goes through its
// steps at its own speed, and a device waits for whichever step of whichever dimension ends next,
// an order that follows from the closed forms. Between phases all members wait for all dimensions.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_PHASES_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_PHASES_H_

#include "configs/units.h"
#include "workloads/collectives/plan.h"

namespace tpusim::collectives {

// Returns the steps of an all-gather (to be mirrored for sums) or an all-to-all at one position.
DeviceSteps PhasedSteps(const Plan& plan, const Position& position);

// Returns their closed form without launch: the sum over the phases of the dimension that takes
// longest, or more where memory cannot serve all dimensions at once. `sums`: the mirror image.
Picoseconds PhasedTime(const Plan& plan, bool sums);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_PHASES_H_

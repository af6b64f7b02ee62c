// What the colors of a plan do side by side.
//
// Time is cut into slots; every phase of every color is in one. In a slot each dimension
// carries what the colors have for it: colors that take it together send their
// chunks together. The dimensions do not wait for each other: each goes through its steps at its
// own speed, and a device takes care of whichever step of whichever dimension ends next.
// The order in which they end follows from the closed forms, so that a device waits
// for them one after the other. Between slots all members wait for all dimensions.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_SLOTS_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_SLOTS_H_

#include "configs/units.h"
#include "workloads/collectives/plan.h"

namespace tpusim::collectives {

// The steps of an all-gather (for sums to be mirrored) or an all-to-all at one position.
DeviceSteps SlottedSteps(const Plan& plan, const Position& position);
// How often the bytes of a dimension pass the memory of the device that has most to do in this
// step of a gathering: read where they are sent, written where they arrive. `sums`: of the
// mirror image, where a receiver also reads what is added to.
int64_t MemoryPasses(const Dimension& dimension, Way way, int64_t step, bool sums);

// Their closed form without launch: sum over the slots of the dimension that takes longest, or
// more where memory cannot serve all dimensions at once. `sums`: mirrored.
Picoseconds SlottedTime(const Plan& plan, bool sums);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_SLOTS_H_

// The ways to lay a pod with its program upon itself.
//
// An automorphism is a turn of the slice (turns.h) and a relabeling of the program (relabeling.h)
// that fit: what a device does over a route, its image does over the image of the route, at the
// same clock, over links of the same rates. Devices that are images of each other behave alike,
// whatever is under way at once. Color refinement does not find these classes where routes have
// other names at the image: around a slow chip of a 16 x 16 x 16 torus every device sees something
// else over its route towards x+, but 48 of them at a time are images of each other.
#ifndef TPUSIM_SIM_SYMMETRY_AUTOMORPHISMS_H_
#define TPUSIM_SIM_SYMMETRY_AUTOMORPHISMS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/config.h"
#include "models/isa/program.h"
#include "sim/impairments/impairments.h"
#include "sim/symmetry/classes.h"
#include "sim/symmetry/relabeling.h"

namespace tpusim::sim {

// The orbits of the automorphisms that were found: some of them, not always all. The
// search is for those that keep one of the chips that are least like others in its class.
// Nullopt: there are none, or several slices.
std::optional<Classes> OrbitsOf(const configs::Config& config, const isa::PodProgram& program,
                                const Impairments& impairments);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_AUTOMORPHISMS_H_

#include "models/chip/mxu.h"

#include "models/events/sim_time.h"

namespace tpusim::chip {

Mxu::Mxu(sc_core::sc_module_name name) : sc_module(name) {}

void Mxu::Occupy(Picoseconds start, Picoseconds duration) { slot_.Occupy(start, duration); }

}  // namespace tpusim::chip

#include "models/chip/xlu.h"

namespace tpusim::chip {

Xlu::Xlu(sc_core::sc_module_name name) : sc_module(name) {}

void Xlu::Occupy(Picoseconds start, Picoseconds duration) { slot_.Occupy(start, duration); }

}  // namespace tpusim::chip

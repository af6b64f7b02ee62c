// SystemC's clock in tpusim's units: both count whole picoseconds.
#ifndef TPUSIM_MODELS_EVENTS_SIM_TIME_H_
#define TPUSIM_MODELS_EVENTS_SIM_TIME_H_

#include <systemc>

#include "configs/units.h"

namespace tpusim::events {

// SystemC's default resolution is 1 ps; sim/simulate.cc makes sure of it.
inline Picoseconds Now() {
  return Picoseconds(
      static_cast<int64_t>(sc_core::sc_get_curr_simcontext()->time_stamp().value()));
}

inline sc_core::sc_time ScTime(Picoseconds t) {
  return sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(t.value()));
}

}  // namespace tpusim::events

#endif  // TPUSIM_MODELS_EVENTS_SIM_TIME_H_

// The routes in flight together, and whether the folding allows all of them at once (symmetry.h).
// It is asked at the end of every instant in which one more route came into use; what has been
// allowed is remembered.
#ifndef TPUSIM_SIM_SYMMETRY_IN_FLIGHT_H_
#define TPUSIM_SIM_SYMMETRY_IN_FLIGHT_H_

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "models/events/fluid.h"
#include "models/ici/router.h"
#include "sim/symmetry/symmetry.h"

namespace tpusim::sim {

class InFlight : public ici::FlightListener, public events::SettleListener {
 public:
  // Watches the routes of a program; both arguments must outlive it.
  InFlight(const Symmetry& symmetry, const isa::PodProgram& program);

  void FlightBegins(int32_t device, int32_t route) override;
  void FlightEnds(int32_t device, int32_t route) override;
  // Stops SystemC if the folding does not allow what is under way.
  void InstantSettled() override;

  // Returns the set of routes that was refused; nullopt: everything was allowed.
  const std::optional<RouteSet>& refused() const { return refused_; }

 private:
  using Bits = std::vector<uint64_t>;  // over Symmetry::all()

  int32_t IndexOf(int32_t device, int32_t route) const {
    return index_[program_.program_of_device[device]][route];
  }
  bool Allowed();
  const Symmetry& symmetry_;
  const isa::PodProgram& program_;
  std::vector<std::vector<int32_t>> index_;  // into all(), by program and route; -1: free
  std::vector<int32_t> flights_;             // by index
  Bits used_;
  bool grown_ = false;
  std::vector<Bits> allowed_;
  std::optional<RouteSet> refused_;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_IN_FLIGHT_H_

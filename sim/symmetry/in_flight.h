// Which routes transfers are under way on, and whether the folding allows all of them at
// once (symmetry.h). Asked at the end of every instant in which one more route came into
// use; what has been allowed is remembered.
//
// Where an approximate folding takes transfers of unlike devices for each other, it also
// measures by how much the same transfer of different classes ends apart.
#ifndef TPUSIM_SIM_SYMMETRY_IN_FLIGHT_H_
#define TPUSIM_SIM_SYMMETRY_IN_FLIGHT_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_set>
#include <vector>

#include "models/chip/fluid.h"
#include "models/ici/router.h"
#include "sim/symmetry/symmetry.h"

namespace tpusim::sim {

class InFlight : public ici::FlightListener, public chip::SettleListener {
 public:
  // Both must outlive it.
  InFlight(const Symmetry& symmetry, const isa::PodProgram& program);

  void FlightBegins(int32_t device, int32_t route) override;
  void FlightEnds(int32_t device, int32_t route) override;
  // Stops SystemC if the folding does not allow what is under way.
  void InstantSettled() override;

  // What was not allowed; nullopt: everything was.
  const std::optional<RouteSet>& refused() const { return refused_; }
  // The largest difference between the ends of one transfer in different classes, over
  // routes that the folding takes for even.
  Picoseconds Spread() const { return spread_; }

 private:
  using Bits = std::vector<uint64_t>;  // over Symmetry::all()

  int32_t IndexOf(int32_t device, int32_t route) const {
    return index_[program_.program_of_device[device]][route];
  }
  bool Allowed();
  void UnevenEnds(int32_t device, int32_t route);

  // The ends of the n-th transfer over a route, of all classes that use it.
  struct Ends {
    Picoseconds first, last;
    int64_t classes = 0;
  };
  struct UnevenRoute {
    int64_t users = 0;           // classes
    std::vector<int64_t> ended;  // transfers, by class
    int64_t complete = 0;        // transfers that ended in all classes
    std::deque<Ends> open;       // those after them
  };

  const Symmetry& symmetry_;
  const isa::PodProgram& program_;
  std::vector<std::vector<int32_t>> index_;  // into all(), by program and route; -1: free
  std::vector<int32_t> flights_;             // by index
  Bits used_;
  bool grown_ = false;
  std::vector<Bits> allowed_;
  std::optional<RouteSet> refused_;
  std::map<int32_t, UnevenRoute> uneven_;  // by route
  Picoseconds spread_{0};
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_IN_FLIGHT_H_

// Color refinement of a pod (symmetry.h): devices, chips and hosts start with a color for what they
// are, and take round by round a color for what they see around them.
#ifndef TPUSIM_SIM_SYMMETRY_COLOR_REFINEMENT_H_
#define TPUSIM_SIM_SYMMETRY_COLOR_REFINEMENT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "configs/hosts.h"
#include "models/isa/program.h"
#include "sim/impairments/impairments.h"
#include "sim/symmetry/classes.h"

namespace tpusim::sim {

// Distinct program and route, in increasing order.
using RouteSet = std::vector<std::pair<int32_t, int32_t>>;

struct Colors {
  std::vector<Color> devices, chips, hosts;

  // Returns the number of classes of devices, chips and hosts together.
  int64_t classes() const;
};

// Classes with these partitions, without links (AddLinks).
Classes PartitionsOf(const Colors& colors);

class Refinement {
 public:
  // Everything must outlive it. The program must have been verified.
  Refinement(const configs::Config& config, const isa::PodProgram& program,
             const Impairments& impairments);

  // Returns the colors before the first round: devices of one program and clock have one color, as
  // have hosts of equally many chips, and all chips.
  Colors First() const;
  // The next color of each: its own, and the multiset of what it sees: to whom a device sends over
  // each route and over how many hops, who sends to it, its chip, and the loads of links under each
  // of the sets. A new color contains the old one, so classes only ever split.
  Colors Next(const Colors& now, const std::vector<RouteSet>& sets) const;
  // Rounds until no color splits any more.
  Colors Refined(Colors colors, const std::vector<RouteSet>& sets) const;

  // Adds to the colors of senders what loads their transfers meet if all routes of the set are in
  // use and devices have these colors.
  void AddSet(const RouteSet& set, const std::vector<Color>& devices,
              std::vector<Color>& next) const;

  // The routes of each program.
  const std::vector<std::vector<int32_t>>& used() const { return used_; }
  // Returns a vector that holds the color of each link at its LinkIndex: links of equal rates have
  // one color.
  const std::vector<Color>& link_rates() const { return link_rates_; }

 private:
  const configs::Config& config_;
  const isa::PodProgram& program_;
  const Impairments& impairments_;
  const int64_t per_chip_;
  const std::vector<std::vector<int32_t>> used_;
  const configs::Hosts on_hosts_;
  std::vector<Color> link_rates_;
  std::vector<std::vector<int32_t>> devices_of_;  // by program
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_COLOR_REFINEMENT_H_

// Partitions of a pod that are coarser than the exact one, level by level, for simulations that are
// approximate.
//
//   level 0      tells apart what devices are: their programs and clocks, the degraded links that
//                they send over, and the routes over which transfers reach them
//   level 1      and of what there are in their groups: a group is all devices that one route
//                connects. A straggler of a torus leaves its rows, its columns and the rest
//   level 1 + k  and, in k rounds of color refinement, to whom they send
//
// Every level is finer than those before it, and the rounds end at the exact partition of
// symmetry.h before any transfers have met. Members of a class still differ in the peers, lengths
// and loads of their routes. Their representative takes the longest way, all links that one of them
// crosses, and what arrives over a route has arrived when it has from all classes of senders.
#ifndef TPUSIM_SIM_SYMMETRY_LEVELS_H_
#define TPUSIM_SIM_SYMMETRY_LEVELS_H_

#include <cstdint>
#include <vector>

#include "configs/config.h"
#include "models/isa/program.h"
#include "sim/impairments/impairments.h"
#include "sim/symmetry/classes.h"
#include "sim/symmetry/color_refinement.h"

namespace tpusim::sim {

class Levels {
 public:
  // Everything must outlive it. The program must have been verified.
  Levels(const configs::Config& config, const isa::PodProgram& program,
         const Impairments& impairments);

  // Returns the number of classes of devices of a level. Levels are made when they are first asked
  // for.
  int64_t DeviceClasses(int level) { return PartitionOf(At(level).devices).classes(); }
  Classes ClassesAt(int level);

 private:
  const Colors& At(int level);
  Colors OfDevices() const;
  Colors OfGroups(Colors colors) const;
  // A chip and a host are what their devices are, and devices of a class are on chips of a class.
  Colors Settled(Colors colors) const;

  const configs::Config& config_;
  const isa::PodProgram& program_;
  const Impairments& impairments_;
  const Refinement refinement_;
  const configs::Hosts on_hosts_;
  bool crosses_dcn_ = false;
  // Groupings: by device the first member of its group; every grouping once.
  std::vector<std::vector<int32_t>> groupings_;
  std::vector<Colors> levels_;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_LEVELS_H_

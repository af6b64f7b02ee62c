// Which parts of a pod do the same thing at the same time.
//
// A partition of the devices into classes, and what follows from it for what they share:
// one member of every class is simulated, the representative. Of a flow that every device
// of class A starts, each member of class B receives |A| / |B|.
//
// Links have no state but counters, so they are no part of the partition: how much the
// flows of every class put on each link follows from the routes. Links on which all
// transfers of the program put the same load are one class of links and one resource.
// symmetry.h says when that is exact.
#ifndef TPUSIM_SIM_SYMMETRY_CLASSES_H_
#define TPUSIM_SIM_SYMMETRY_CLASSES_H_

#include <cstdint>
#include <vector>

#include "configs/config.h"
#include "models/isa/program.h"
#include "sim/impairments.h"

namespace tpusim::sim {

// A partition of 0 .. n-1. Classes are numbered by their first members.
struct Partition {
  std::vector<int32_t> class_of;  // -1: does not exist
  std::vector<int32_t> first;     // per class: its smallest member, the representative
  std::vector<int64_t> size;      // per class

  int32_t Representative(int64_t member) const { return first[class_of[member]]; }
  int64_t Copies(int64_t member) const { return size[class_of[member]]; }
  bool IsRepresentative(int64_t member) const {
    return class_of[member] >= 0 && first[class_of[member]] == member;
  }
  int64_t classes() const { return static_cast<int64_t>(first.size()); }
};

// One class per color. Members of color kNoColor do not exist and are in no class.
using Color = uint64_t;
inline constexpr Color kNoColor = 0;
Partition PartitionOf(const std::vector<Color>& colors);

inline int64_t LinkIndex(const configs::Link& link) {
  return link.chip * configs::kDirections + static_cast<int64_t>(link.direction);
}

// What the transfers of one class of devices over one route do to the links.
struct RouteLoad {
  struct OnLinks {
    int32_t link_class = 0;
    int64_t flows = 0;  // of the class, over each of these links
  };
  std::vector<OnLinks> links;
  // The member whose route crosses most links. All members cross as many, unless the
  // folding is approximate (Folding::kApproximate). -1: the class does not use the route.
  int32_t slowest = -1;
};

struct Classes {
  Partition devices;
  Partition chips;  // their host links
  Partition hosts;  // their network cards; empty in a single slice
  Partition links;  // by LinkIndex
  // By route, then by class of devices; empty for routes that nobody uses.
  std::vector<std::vector<RouteLoad>> loads;
};

// Classes of links and loads for the partitions of devices, chips and hosts.
void AddLinks(const configs::Config& config, const isa::PodProgram& program,
              const Impairments& impairments, Classes& classes);

// Every device, link, host link and network card for itself.
Classes Unfolded(const configs::Config& config, const isa::PodProgram& program,
                 const Impairments& impairments);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_CLASSES_H_

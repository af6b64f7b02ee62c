// Which parts of a pod do the same thing at the same time.
//
// SPMD programs on a torus make most chips indistinguishable: same program, same
// parameters, neighbours that are indistinguishable themselves. Colour refinement
// makes that precise. Nodes are devices, directed links, host links and the network
// cards of hosts; a device is joined to the peers and links of every route that its
// program uses, for routes to other slices to the cards and host links at both ends,
// and to its chip's host link. Nodes start with a colour for what they are (program,
// faults; direction and rate), and are split as long as two of one colour see
// different colours around them. What is left is the coarsest equitable
// partition: every member of a class sees the same numbers of members of every
// other class.
//
// On such a partition max-min fair rates are the same for all members of a class,
// so one member can stand for all. Of a flow that every device of class A starts,
// each member x of class X carries |A| / |X| (once per crossing of a route, if X
// are links), whatever the routes look like in between. So the simulated member
// carries its flow with that weight, and raises its peer's flag |A| / |peers| times.
//
// Exact as long as everything that devices share is a flow, and no choice depends
// on a device's number; both hold here (design rules of models/ici and
// configs/topology.h).
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
  std::vector<int32_t> first;     // per class: its smallest member, which stands for it
  std::vector<int64_t> size;      // per class

  int32_t Representative(int64_t member) const { return first[class_of[member]]; }
  int64_t Copies(int64_t member) const { return size[class_of[member]]; }
  bool IsRepresentative(int64_t member) const {
    return class_of[member] >= 0 && first[class_of[member]] == member;
  }
  int64_t classes() const { return static_cast<int64_t>(first.size()); }
};

inline int64_t LinkIndex(const configs::Link& link) {
  return link.chip * configs::kDirections + static_cast<int64_t>(link.direction);
}

struct Classes {
  Partition devices;
  Partition links;  // by LinkIndex
  Partition chips;  // their host links
  Partition hosts;  // their network cards; empty in a single slice
};

// Every device, link, host link and network card for itself.
Classes Unfolded(const configs::Config& config);
// The program must have been verified.
Classes FindClasses(const configs::Config& config, const isa::PodProgram& program,
                    const Impairments& impairments);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_CLASSES_H_

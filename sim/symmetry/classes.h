// Classes: parts of a pod that do the same at the same time.
//
// A partition of the devices into classes, and what follows from it for what they share:
// one member of every class is simulated, the representative. Of a flow that every device
// of class A starts, each member of class B receives |A| / |B|.
//
// Members of a class may call routes and flags by other names than their representative
// (views; automorphisms.h says when): what it does over a route, they do over the route that
// has this name in their view.
//
// Links have no state but counters, so they are no part of the partition: how much the flows of
// every class put on each link follows from the routes. Links on which all transfers of the program
// put the same load are one class of links and one resource. symmetry.h says when that is exact.
//
// Where it is not, members of a class differ in what their transfers over a route meet: how
// far they go, over how busy links, and from which classes their own arrivals come. The
// representative then takes the longest way, all links that one of them crosses, and the last
// arrival of such an uneven route.
#ifndef TPUSIM_SIM_SYMMETRY_CLASSES_H_
#define TPUSIM_SIM_SYMMETRY_CLASSES_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "configs/config.h"
#include "models/isa/program.h"
#include "sim/impairments/impairments.h"

namespace tpusim::sim {

// A partition of 0 .. n-1. Classes are numbered by their first members.
struct Partition {
  std::vector<int32_t> class_of;  // -1: does not exist
  std::vector<int32_t> first;     // per class: its smallest member, the representative
  std::vector<int64_t> size;      // per class

  int32_t Representative(int64_t member) const { return first[class_of[member]]; }
  int64_t Multiplicity(int64_t member) const { return size[class_of[member]]; }
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

// The load of the transfers of one class of devices over one route on the links.
struct RouteLoad {
  struct OnLinks {
    int32_t link_class = 0;
    int64_t flows = 0;  // of the class, over each of these links
  };
  std::vector<OnLinks> links;
  // The member whose way sets the latency: the longest. -1: the class does not use the route.
  int32_t timed_by = -1;
  // Whose memory it loads: of the transfers of the class over this route so many reach each
  // device of the receiver's class, on the average.
  struct Receiver {
    int32_t receiver = 0;  // a representative
    double share = 0;
  };
  absl::InlinedVector<Receiver, 1> receivers;
  // Arrivals at representatives. `count` is a whole number, which differs from the share where
  // views differ, as then several routes lead to one device.
  struct Arrival {
    int32_t receiver = 0;  // a representative
    int32_t view = 0;      // of the senders
    int64_t count = 0;
    // Over an uneven route some of the receivers are reached by this class and others by
    // others: it is the class of this number among so many. One: there are no others.
    int32_t sender = 0, senders = 1;
  };
  absl::InlinedVector<Arrival, 1> arrivals;
};

// The names that members and their representative have for the same routes and flags. -1: not used.
struct View {
  std::vector<int32_t> at_representative;  // by route of the member
  std::vector<int32_t> of_member;          // by route of the representative
  std::vector<int32_t> flags;              // of the member, by flag of the representative
};

struct Classes {
  Partition devices;
  Partition chips;  // their host links
  Partition hosts;  // their network cards; empty in a single slice
  Partition links;  // by LinkIndex
  // View 0 leaves all names as they are and has no tables. Empty: there is no other.
  std::vector<View> views;
  std::vector<int32_t> view_of;  // by device; empty: 0 for all
  // Loads by route of the representative, then by class of devices; empty for routes without a
  // user.
  std::vector<std::vector<RouteLoad>> loads;

  int32_t ViewOf(int32_t device) const { return view_of.empty() ? 0 : view_of[device]; }
  int32_t RouteAtRepresentative(int32_t device, int32_t route) const {
    const int32_t view = ViewOf(device);
    return view == 0 ? route : views[view].at_representative[route];
  }
  int32_t RouteOfMember(int32_t device, int32_t route) const {
    const int32_t view = ViewOf(device);
    return view == 0 ? route : views[view].of_member[route];
  }
};

// Classes of links and loads for the partitions of devices, chips and hosts. `uneven`: routes over
// which members of a class differ in the classes that they send to or receive from; empty: none.
void AddLinks(const configs::Config& config, const isa::PodProgram& program,
              const Impairments& impairments, const std::vector<bool>& uneven, Classes& classes);

// Returns classes of one member each.
Classes Unfolded(const configs::Config& config, const isa::PodProgram& program,
                 const Impairments& impairments);

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_CLASSES_H_

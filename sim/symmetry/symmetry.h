// The symmetry of a pod under a program: the coarsest partition of its devices into
// classes that behave alike, found as far as it is needed.
//
// SPMD programs on a torus make most devices indistinguishable: same program, same
// parameters, partners that are indistinguishable themselves. Color refinement makes that
// precise: devices start with a color for what they are (program, clock) and are split as
// long as two of one color see different colors around them: in those to which they send
// and over how many hops, in those that send to them, on their chip and their host. What is
// left is the coarsest equitable partition.
//
// What is on the links matters only for transfers that are under way at the same time. Let
// S be a set of routes on which transfers are under way together. The load of a link under
// S is the multiset of the classes of the transfers that cross it; links of equal load and
// rate are equal. Max-min fair rates are the same for all transfers of a class if each of
// them crosses the same set of loads (a second link with the load of the first adds no
// constraint). Allows(S) says whether the partition has this property; a subset of an
// allowed set is allowed too. If it has not, Split(S) refines by S, and the simulation has
// to begin again. Sets that never occur never split a class. Partitions only become finer,
// so this ends; in practice after one or two simulations that stop early.
//
// A set here names programs and routes: all devices of a program count as sending if one
// does.
//
// Where names get in the way, because the program does the same over other routes around a
// part that is unlike the rest, the orbits of automorphisms (automorphisms.h) can be fewer
// than the classes of the refinement. Then they are the partition; it allows every set,
// because images transfer at the same time.
//
// Exact as long as everything that devices share is a flow and no choice depends on a
// device's number.
//
// Where these classes are too many, an approximate folding overlooks routes: to which peer a device
// sends over them, from which it receives, how far and over how busy links. Then only how many
// transfers arrive tells devices apart. Routes that carry least are overlooked first, as many
// as bring the classes down to a number; what such routes differ in is taken at its worst or
// at its best for all (Overlooked). Where that closes a circle of waits which the devices do not
// have, Retreat() overlooks nothing.
#ifndef TPUSIM_SIM_SYMMETRY_SYMMETRY_H_
#define TPUSIM_SIM_SYMMETRY_SYMMETRY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "configs/hosts.h"
#include "models/isa/program.h"
#include "sim/impairments/impairments.h"
#include "sim/symmetry/classes.h"
#include "sim/symmetry/folding_report.h"

namespace tpusim::sim {

enum class Folding {
  kOff,          // every device is simulated
  kExact,        // one of every class; the result is the same
  kApproximate,  // partners, lengths of ways and loads of links need not split a class
  kAutomatic,    // exact, unless that takes too long (simulate.h)
};

// Distinct program and route, in increasing order.
using RouteSet = std::vector<std::pair<int32_t, int32_t>>;

class Symmetry {
 public:
  // Everything must outlive it. The program must have been verified.
  // `recorded`: devices that must be called by the names of their own routes. `most_classes` of
  // devices are what an approximate folding aims at.
  Symmetry(const configs::Config& config, const isa::PodProgram& program,
           const Impairments& impairments, Folding folding,
           const std::vector<int32_t>& recorded = {}, int64_t most_classes = 1);

  const Classes& classes() const { return classes_; }
  // All that transfers can be sent on: allowed, or what is under way has to be watched.
  const RouteSet& all() const { return all_; }
  // Transfers on these routes together get the same rates within every class.
  bool Allows(const RouteSet& set) const;
  // Refines until it does.
  void Split(const RouteSet& set);

  const std::vector<FoldingReport::Step>& steps() const { return steps_; }
  // Overlooks nothing any more; false: nothing is overlooked.
  bool Retreat();
  // Whether there are transfers that an approximation takes for equal though they are not.
  bool approximates() const { return !are_orbits_ && !overlooked_.empty(); }
  // Takes what is overlooked at its worst, as at first, or at its best.
  void Take(Overlooked overlooked_as);

 private:
  struct Colors {
    std::vector<Color> devices, chips, hosts;
  };

  // Until no color splits any more.
  void RefineColors();
  // That, and the classes that follow.
  void Refine();
  Colors NextColors(const Colors& now) const;
  void AddSet(const RouteSet& set, const std::vector<Color>& devices,
              std::vector<Color>& next) const;
  // Takes the orbits for classes if they are fewer.
  void TryOrbits();
  void Colorize();
  bool IsOverlooked(int32_t program, int32_t route) const {
    return !overlooked_.empty() && overlooked_[program][route];
  }
  RouteSet NotOverlooked() const;
  // As many of the routes as bring the classes down to most_classes_, or all.
  void OverlookSome(RouteSet routes);
  std::string NamesOf(const RouteSet& set) const;

  const configs::Config& config_;
  const isa::PodProgram& program_;
  const Impairments& impairments_;
  const Folding folding_;
  const std::vector<int32_t> recorded_;
  const int64_t most_classes_;
  const int64_t per_chip_;
  const std::vector<std::vector<int32_t>> used_;  // routes, by program
  const configs::Hosts on_hosts_;
  std::vector<Color> link_rates_;  // by LinkIndex
  bool may_overlook_ = false;
  OverlookedRoutes overlooked_;
  Overlooked overlooked_as_ = Overlooked::kWorst;
  std::vector<std::vector<int32_t>> devices_of_;  // by program
  RouteSet all_;
  std::vector<RouteSet> sets_;
  Colors colors_;
  Classes classes_;
  bool orbits_tried_ = false;
  std::optional<Classes> orbits_;
  bool are_orbits_ = false;  // the classes
  std::vector<FoldingReport::Step> steps_;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_SYMMETRY_H_

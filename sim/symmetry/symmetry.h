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
// A set here names programs and routes: all devices of a program count as sending if one does.
//
// Where names get in the way, because the program does the same over other routes around a
// part that is unlike the rest, the orbits of automorphisms (automorphisms.h) can be fewer
// than the classes of the refinement. Then they are the partition; it allows every set,
// because images transfer at the same time.
//
// Exact as long as everything that devices share is a flow and no choice depends on a
// device's number.
//
// Where these classes are too many, an approximate simulation takes fewer (levels.h).
//
// The room answers which devices behave alike; `Symmetry` is its entry point. Orbits for every
// simulation were tried and rejected: where every device is a class of its own they find nothing
// coarser.
#ifndef TPUSIM_SIM_SYMMETRY_SYMMETRY_H_
#define TPUSIM_SIM_SYMMETRY_SYMMETRY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/config.h"
#include "models/isa/program.h"
#include "sim/impairments/impairments.h"
#include "sim/symmetry/classes.h"
#include "sim/symmetry/color_refinement.h"
#include "sim/symmetry/folding_report.h"

namespace tpusim::sim {

enum class Folding {
  kOff,          // every device is simulated
  kExact,        // one of every class; the result is the same
  kApproximate,  // as few classes as tell apart what devices and their groups are (levels.h)
  kAutomatic,    // exact, unless that takes too long (simulate.h)
};

class Symmetry {
 public:
  // Everything must outlive it. The program must have been verified. `folds`: or every device is a
  // class of its own. `recorded`: devices that must be called by the names of their own routes.
  Symmetry(const configs::Config& config, const isa::PodProgram& program,
           const Impairments& impairments, bool folds, const std::vector<int32_t>& recorded = {});

  const Classes& classes() const { return classes_; }
  // Returns all routes that transfers can be sent on: allowed together, or to be watched in flight.
  const RouteSet& all() const { return all_; }
  // Transfers on these routes together get the same rates within every class.
  bool Allows(const RouteSet& set) const;
  // Refines until it does.
  void Split(const RouteSet& set);
  // Takes the orbits for classes if they are fewer. Looking for them takes longer than all else here.
  void TryOrbits();

  const std::vector<FoldingReport::FoldingStep>& steps() const { return steps_; }

 private:
  void Refine();
  std::string NamesOf(const RouteSet& set) const;

  const configs::Config& config_;
  const isa::PodProgram& program_;
  const Impairments& impairments_;
  const bool folds_;
  const std::vector<int32_t> recorded_;
  const Refinement refinement_;
  RouteSet all_;
  std::vector<RouteSet> sets_;
  Colors colors_;
  Classes classes_;
  bool orbits_tried_ = false;
  std::optional<Classes> orbits_;
  bool are_orbits_ = false;  // the classes
  std::vector<FoldingReport::FoldingStep> steps_;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_SYMMETRY_SYMMETRY_H_

// Routes of the algorithms, and how many transfers share a link on them.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_ROUTES_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_ROUTES_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "configs/config.h"
#include "configs/hosts.h"
#include "models/isa/program.h"
#include "workloads/collectives/dimension.h"

namespace tpusim::collectives {

// From one device to another, over a minimum-hop route of the torus; between two
// devices of one chip no link is crossed, between slices the data-centre network.
isa::RouteEnd RouteTo(const configs::Topology& topology, int64_t from, int64_t to,
                      configs::Topology::RouteTie tie);

// `offset` chips along an axis to the device of the same number, or along kCoreAxis to another
// device of the chip, or along kSliceAxis round to the same place in another slice. A device from
// which that leads over the edge has no end.
isa::RouteEnd AxisRouteEnd(const configs::Topology& topology, int axis, int64_t offset,
                           int64_t device);

// "x+" or "x-4": that of every device.
isa::Route AxisRoute(const configs::Topology& topology, int axis, int64_t offset);

// Index of that route in the program, which gets it if it has none of its name.
int32_t AddAxisRoute(const configs::Topology& topology, int axis, int64_t offset,
                     isa::PodProgram& program);

// From every member of each list, the positions of a dimension, to the one that
// `offset` leads to, over minimum-hop routes; where two ways round a ring are equally short, the
// one that `tie` says.
isa::Route ListRoute(const configs::Topology& topology, std::string name,
                     const std::vector<std::vector<int64_t>>& lists, const Dimension& dimension,
                     int64_t offset, configs::Topology::RouteTie tie);

// Index of the route in the program, which gets it if it has none like it.
int32_t AddRoute(isa::Route route, isa::PodProgram& program);

// Counts what crosses each link when many transfers are under way at once. Links are
// those of ICI, a device's way to its own chip, and for transfers between slices
// PCIe and the network cards at both ends.
class LinkLoads {
 public:
  explicit LinkLoads(const configs::Config& config);

  // A transfer of the device `from`.
  void Add(int64_t from, const isa::RouteEnd& end, int64_t amount = 1);
  // So many transfers of the device to other slices, and as many from there to it.
  void AddBetweenSlices(int64_t device, int64_t transfers);
  // Returns the seconds that the busiest link of such a transfer is busy.
  double SecondsOn(int64_t from, const isa::RouteEnd& end) const;
  // The busiest link of each direction takes this long; the busiest of all ways
  // between devices of a chip, or of those between slices.
  std::array<double, configs::kDirections> SecondsByDirection() const;
  double SecondsOnDies() const;
  double SecondsBetweenSlices() const;
  // The smallest rate / amount over the loaded links: what one unit gets.
  BytesPerSecond Share() const;
  // The amount there, and the rate of that link.
  int64_t Busiest() const;
  BytesPerSecond BusiestRate() const;
  // Crossings of the longest route added.
  int64_t longest() const { return longest_; }
  // Some route leads to another slice.
  bool dcn() const { return dcn_; }

 private:
  // The order of the table of amounts.
  size_t Own(int64_t device) const;  // ICI links by chip and direction come before
  size_t ToHost(int64_t chip) const;
  size_t FromHost(int64_t chip) const;
  size_t Egress(int64_t host) const;
  size_t Ingress(int64_t host) const;
  // number: effort: kept in place
  using Crossed = absl::InlinedVector<size_t, 4>;  // mostly one link, or four between slices
  Crossed CrossedBy(int64_t from, const isa::RouteEnd& end) const;
  double SlowestOf(size_t first, size_t end, size_t stride) const;
  size_t BusiestLink() const;
  BytesPerSecond RateOf(size_t index) const;

  const configs::Config* config_;
  configs::Hosts hosts_;
  std::vector<int64_t> amounts_;
  int64_t longest_ = 0;
  bool dcn_ = false;
};

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_ROUTES_H_

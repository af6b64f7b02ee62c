// Routes of the algorithms, and how many transfers share a link on them.
#ifndef TPUSIM_WORKLOADS_LOWERING_COLLECTIVES_ROUTES_H_
#define TPUSIM_WORKLOADS_LOWERING_COLLECTIVES_ROUTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "configs/config.h"
#include "models/isa/program.h"

namespace tpusim::lowering {

// "x+" or "x-4": from every chip, `offset` chips along an axis. Chips from which
// that leads over the edge have no end.
isa::Route AxisRoute(const configs::Topology& topology, int axis, int64_t offset);

// From every member of each list to the one `offset` further on in it, cyclic,
// over minimum-hop routes; where two ways round a ring are equally short, the
// one that `tie` says.
isa::Route ListRoute(const configs::Topology& topology, std::string name,
                     const std::vector<std::vector<int64_t>>& lists, int64_t offset,
                     configs::Topology::RouteTie tie);

// Index of the route in the program, which gets it if it has none like it.
int32_t AddRoute(isa::Route route, isa::PodProgram& program);

// Counts what crosses each link when many transfers are under way at once.
class LinkLoads {
 public:
  explicit LinkLoads(const configs::Config& config);

  void Add(const std::vector<configs::Link>& links, int64_t amount = 1);
  // Amount on a link.
  int64_t On(const configs::Link& link) const;
  // The smallest rate / amount over the loaded links: what one unit gets.
  BytesPerSecond Share() const;
  // The amount there, and the rate of that link.
  int64_t Busiest() const;
  BytesPerSecond BusiestRate() const;
  // Links of the longest route added.
  int64_t longest() const { return longest_; }

 private:
  size_t BusiestLink() const;
  BytesPerSecond RateOf(size_t index) const;

  const configs::Config* config_;
  std::vector<int64_t> amounts_;  // by chip and direction
  int64_t longest_ = 0;
};

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_COLLECTIVES_ROUTES_H_

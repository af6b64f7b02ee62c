// What an operation asks of the machine, and for how long.
//
// An operation first waits for what is not shared (a launch, hops), then uses
// resources: alone it takes `time` and, while it runs, `share` of what each of them
// can carry. A product that loads its operands at half of the HBM's rate has a share
// of 0.5 there; a transfer over one link has all of that link and some of HBM. Beside
// others it gets less and takes longer (replay.h). Who gets how much of a resource
// that is full is a matter of bytes per second, not of shares.
#ifndef TPUSIM_WORKLOADS_COST_WORK_H_
#define TPUSIM_WORKLOADS_COST_WORK_H_

#include <array>
#include <cstddef>

#include "configs/topology.h"
#include "configs/units.h"

namespace tpusim::cost {

// HBM, the links of a chip by direction, the way between the devices of a chip, and the ways
// to the host and back, which are those to other slices as well.
inline constexpr size_t kHbmResource = 0;
inline constexpr size_t kLinkResource = 1;  // + configs::Direction
inline constexpr size_t kDieResource = kLinkResource + configs::kDirections;
inline constexpr size_t kToHostResource = kDieResource + 1;
inline constexpr size_t kFromHostResource = kToHostResource + 1;
inline constexpr size_t kResources = kFromHostResource + 1;

using Shares = std::array<double, kResources>;  // 0 .. 1 each

struct Work {
  Picoseconds latency{0};
  Picoseconds time{0};
  Shares share = {};
  BytesPerSecond rate;  // alone, while it uses something; of each of its flows

  Picoseconds alone() const { return latency + time; }
};

}  // namespace tpusim::cost

#endif  // TPUSIM_WORKLOADS_COST_WORK_H_

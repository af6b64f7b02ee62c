// Closed forms and bounds of collectives: how long one takes, and how long it must take.
//
// Two kinds of figure, both pure functions. A *closed form* is the time of one algorithm on links
// that nothing else uses: launch + hops * hop latency + bytes at the effective rate of the links. A
// *bound* is what no algorithm can beat with the links that the group has, at their nominal rate
// and without any latency. The simulated time of a collective alone on the machine agrees with its
// closed form; nothing is ever faster than its bound.
//
// Closed forms are given per dimension of a group. A dimension is a ring or a line of n positions
// on which neighbours exchange in both directions at once: one axis of the
// torus, a Hamiltonian cycle through a box, a ring through scattered chips. A
// collective over several axes is a sequence of dimensions.
#ifndef TPUSIM_MODELS_TIMING_COLLECTIVE_TIMING_H_
#define TPUSIM_MODELS_TIMING_COLLECTIVE_TIMING_H_

#include <cstdint>
#include <vector>

#include "configs/chip.h"
#include "configs/topology.h"
#include "configs/units.h"
#include "models/isa/program.h"

namespace tpusim::timing {

// Returns the rate of one direction of one link: the nominal rate times the share that a collective
// reaches on an axis that is connected like that.
BytesPerSecond EffectiveLinkRate(const configs::IciParams& ici, configs::AxisLinks links);

// Returns the launch time of a collective before anything moves, in whole cycles of the core that
// launches it.
Picoseconds LaunchTime(const configs::ChipParams& chip);

// Returns the latency from a device to one of another slice: PCIe to the host, the data-centre
// network, PCIe from the host.
Picoseconds DcnLatency(const configs::HostParams& host);

// Returns the time between leaving `device` and arriving over a route from there: DcnLatency, or a
// hop for each crossing.
Picoseconds RouteLatency(const configs::ChipParams& chip, int64_t device,
                         const isa::RouteEnd& route);

// The speed of one step between neighbours of a dimension.
struct DimensionTiming {
  int64_t n = 1;             // positions
  BytesPerSecond rate;       // one direction between two neighbours, effective
  Picoseconds step_latency;  // hops of the longest step * hop latency
};

// All-gather of a shard of `shard` bytes per position; every formula without
// launch. A reduce-scatter is its mirror image in time and takes as long
// (`shard` = bytes of the result per position).
//
// Ring: in step t every member passes on, in both directions, what it received in
// step t-1 (its own shard first). floor((n-1)/2) such steps bring everything but,
// for even n, the shard of the antipode, whose halves come one from each side in
// a last step of half the length. So (n-1)/2 shards cross each link in each
// direction, in floor(n/2) steps.
//   t = (n-1)/2 * shard/rate + floor(n/2) * step_latency
Picoseconds RingAllGather(Bytes shard, const DimensionTiming& dimension);

// Line: the last position receives everything from the left over one link,
// n-1 shards one after the other, each passed on by its neighbour one step after
// it arrived there. The other direction runs beside it on its own links.
//   t = (n-1) * (shard/rate + step_latency)
Picoseconds LineAllGather(Bytes shard, const DimensionTiming& dimension);

// Half of an all-gather that sends one half of the data clockwise round a ring and the other half
// counterclockwise: the time of one half, of which every position has `shard` bytes, in n-1 steps.
// RingAllGather sends whole shards both ways in half as many steps: as fast but for latency; here
// no shard has to be halved.
//   t = (n-1) * (shard/rate + step_latency)
Picoseconds OneWayRingAllGather(Bytes shard, const DimensionTiming& dimension);

// All-to-all with `block` bytes from each position to each other.
//
// Ring: blocks go the shorter way, the antipode's as halves both ways. Step t of
// floor(n/2) moves one position further everything that has further to go:
// blocks for distances t..(n-1)/2 and half the antipode's. Sum over the steps:
// n^2/8 blocks per link (n even) or (n^2-1)/8 (n odd). With V = n^2 * block this is
// the V/8 of an array of V bytes over n devices.
//   t = blocks * block/rate + floor(n/2) * step_latency
Picoseconds RingAllToAll(Bytes block, const DimensionTiming& dimension);

// Line: every block goes straight to its destination. The link in the middle
// carries one block for each pair on its two sides: floor(n/2) * ceil(n/2), and
// the farthest pair is n-1 steps apart.
//   t = floor(n/2)*ceil(n/2) * block/rate + (n-1) * step_latency
Picoseconds LineAllToAll(Bytes block, const DimensionTiming& dimension);

// Between slices, joined by a network that never is the bottleneck: every member sends
// to all others at once. An all-gather of `shard`, its mirror image, or an
// all-to-all with blocks of that size; dimension.rate is what a device may send in all.
//   t = (n-1) * shard/rate + step_latency
Picoseconds SwitchedExchange(Bytes shard, const DimensionTiming& dimension);

// Everything at once over routes of which the busiest link carries `busiest`
// bytes: shared fairly, all that crosses it ends together.
//   t = busiest/rate + latency of the longest route
Picoseconds DirectTransfers(Bytes busiest, BytesPerSecond rate, Picoseconds latency);

// Copy within one memory (read + write, `passes` = 2) or fill (write, 1). In VMEM
// a register is loaded and stored per cycle and slot, whatever the passes.
Picoseconds LocalCopy(const configs::ChipParams& chip, isa::MemorySpace space, Bytes bytes,
                      int64_t passes);

// --- Bounds ---

// A way to split the group in two: what can cross, and how many are where.
struct GroupCut {
  int64_t links = 0;    // directed links from one side to the other; the same back
  int64_t members = 0;  // on the smaller side
};

// The wires of a group, as the bounds see them.
struct GroupWires {
  int64_t n = 1;               // members
  int64_t links = 0;           // directed links that end at a member
  int64_t fewest_links = 0;    // incoming links of the member that has fewest
  int64_t total_distance = 0;  // sum of hops over all ordered pairs; 0 = not known
  std::vector<GroupCut> cuts;
  BytesPerSecond nominal;  // one link, one direction
};

// All-reduce of V bytes per device. Every byte of the result takes n-1
// receptions to be summed and n-1 to be spread: 2(n-1)V over all links. And
// across any cut the sum of the other side, V bytes, has to come.
Picoseconds AllReduceBound(Bytes v, const GroupWires& wires);
// All-gather to V bytes: every device receives (n-1)/n V; a side of a cut with m
// members lacks (n-m)/n V.
Picoseconds AllGatherBound(Bytes v, const GroupWires& wires);
// Reduce-scatter of V bytes: the same, by time reversal.
Picoseconds ReduceScatterBound(Bytes v, const GroupWires& wires);
// All-to-all of `operand` bytes per device: m(n-m) pairs of operand/n bytes cross
// a cut each way; and every pair's bytes occupy as many links as it is hops apart.
Picoseconds AllToAllBound(Bytes operand, const GroupWires& wires);
// Permutation: the message of a pair over its route (two routes where both ways
// round are equally short), and all bytes times hops over all links.
Picoseconds PermuteBound(Bytes message, int64_t fewest_routes, int64_t total_hops, int64_t links,
                         BytesPerSecond nominal);

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_COLLECTIVE_TIMING_H_

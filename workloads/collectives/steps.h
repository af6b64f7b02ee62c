// The steps of one device in a collective.
//
// A collective runs over the dimensions of a group (dimension.h). In a step a device sends
// transfers to some positions of its dimensions and waits for transfers that come in, sent in this
// step or (ChunkTransfer::lasts) an earlier one; it goes on to the next step when all of them have
// arrived. The steps say which chunks of data a transfer carries, not only how many bytes:
// bodies are generated from the bytes, and tests follow the chunks.
//
// The data of a group is an array of chunks with the coordinates
//   origin       position (one coordinate per dimension) whose shard it is; for sums,
//                the position that owns the result
//   destination  all-to-all only: the position that it is for
//   color        which of the k equal parts of every shard
//   half         0 or 1, where a ring of even length halves shards
// and a transfer carries boxes of them.
#ifndef TPUSIM_WORKLOADS_COLLECTIVES_STEPS_H_
#define TPUSIM_WORKLOADS_COLLECTIVES_STEPS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "configs/topology.h"

namespace tpusim::collectives {

// The axes of the torus and, as two more, the devices of a chip and the slices.
inline constexpr int kMaxDimensions = configs::kMaxAxes + 2;
inline constexpr int kCoreAxis = configs::kMaxAxes;
inline constexpr int kSliceAxis = configs::kMaxAxes + 1;
using Position = std::array<int64_t, kMaxDimensions>;

// `count` coordinates from `first`, modulo the length of the dimension.
struct PositionRange {
  int64_t first = 0, count = 1;
  auto operator<=>(const PositionRange&) const = default;
};

inline constexpr int kBothHalves = -1;

struct Chunks {
  std::array<PositionRange, kMaxDimensions> origin = {};
  std::array<PositionRange, kMaxDimensions> destination = {};
  int color = 0;
  int half = kBothHalves;
  // The chunks of all origins were added up on the way: they take the room of one.
  bool summed = false;
};

// Number of chunks, where a shard of one color has `halves` (1 or 2).
int64_t CountOf(const Chunks& chunks, int halves);

// One transfer, seen from one of its ends.
struct ChunkTransfer {
  int dimension = 0;
  // The position of the other end, relative to this one.
  int64_t delta = 0;
  // Second of two equally short routes; see Dimension::Shape::kScattered.
  bool other_way = false;
  bool reduce = false;  // the receiver adds it to what it has
  // It is awaited so many steps after the one in which it is sent; the same at both ends.
  int lasts = 0;
  std::vector<Chunks> chunks;
};

struct DeviceStep {
  std::vector<ChunkTransfer> sends, receives;
};
using DeviceSteps = std::vector<DeviceStep>;

// The collective backwards: receivers send, last step first, and what sent
// adds. A broadcast tree becomes the reduction tree of the same shape: an
// all-gather becomes the reduce-scatter that sums every contribution once.
DeviceSteps Mirrored(const DeviceSteps& steps);

}  // namespace tpusim::collectives

#endif  // TPUSIM_WORKLOADS_COLLECTIVES_STEPS_H_

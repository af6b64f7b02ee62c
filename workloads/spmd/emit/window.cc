#include "workloads/spmd/emit/window.h"

#include <algorithm>
#include <map>

#include "workloads/hlo/ir/attributes.h"
#include "workloads/spmd/emit/emit.h"

namespace tpusim::spmd {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using sharding::Axes;

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// A part of the block of the device `hops` shards further on.
struct Piece {
  int64_t hops = 0, begin = 0, end = 0;
  std::vector<int64_t> receivers;  // shard numbers
};

struct Pieces {
  int64_t first = 0, limit = 0;  // their range, from the start of the own block
  std::vector<Piece> list;       // ascending, without gaps
};

Pieces PiecesOf(const Window& w) {
  const int64_t shards = Product(w.axes);
  // What device i wants and exists.
  const auto wanted = [&](int64_t i) {
    const int64_t begin = w.step * i + w.offset;
    if (w.cyclic) return std::pair(begin, begin + w.width);
    return std::pair(std::max<int64_t>(begin, 0), std::min(begin + w.width, w.size));
  };
  Pieces pieces;
  bool any = false;
  for (int64_t i = 0; i < shards; ++i) {
    const auto [begin, end] = wanted(i);
    if (begin >= end) continue;
    const int64_t own = i * w.block;
    pieces.first = any ? std::min(pieces.first, begin - own) : begin - own;
    pieces.limit = any ? std::max(pieces.limit, end - own) : end - own;
    any = true;
  }
  if (!any) return pieces;
  for (int64_t hops = FloorDiv(pieces.first, w.block); hops * w.block < pieces.limit; ++hops) {
    Piece piece;
    piece.hops = hops;
    piece.begin = std::max<int64_t>(pieces.first - hops * w.block, 0);
    piece.end = std::min(pieces.limit - hops * w.block, w.block);
    for (int64_t i = 0; i < shards; ++i) {
      const int64_t source = i + hops;
      if (!w.cyclic && (source < 0 || source >= shards)) continue;
      const auto [begin, end] = wanted(i);
      if (std::max(begin, source * w.block + piece.begin) <
          std::min(end, source * w.block + piece.end)) {
        piece.receivers.push_back(i);
      }
    }
    pieces.list.push_back(std::move(piece));
  }
  return pieces;
}

// Every receiver has it already.
bool IsOwn(const Window& w, const Piece& piece) {
  return w.cyclic ? piece.hops % Product(w.axes) == 0 : piece.hops == 0;
}

// A share of a neighbour's block, exactly: where windows drift against the blocks, no two devices
// find the same part of it.
struct Share {
  int64_t hops = 0, width = 0;        // the most that any device receives
  std::vector<int64_t> receivers;     // shard numbers
  std::vector<int64_t> start, place;  // in the sender's block, in the receiver's window
};

std::vector<Share> SharesOf(const Window& w) {
  const int64_t shards = Product(w.axes);
  std::map<int64_t, Share> by_hops;
  const auto for_parts = [&](const auto& visit) {
    for (int64_t i = 0; i < shards; ++i) {
      const int64_t begin = std::max<int64_t>(w.step * i + w.offset, 0);
      const int64_t end = std::min(w.step * i + w.offset + w.width, w.size);
      for (int64_t source = begin / w.block; begin < end && source * w.block < end; ++source) {
        visit(i, source, std::max(begin, source * w.block), std::min(end, (source + 1) * w.block));
      }
    }
  };
  for_parts([&](int64_t i, int64_t source, int64_t begin, int64_t end) {
    Share& share = by_hops[source - i];
    share.hops = source - i;
    share.width = std::max(share.width, end - begin);
    share.receivers.push_back(i);
    share.start.resize(shards);
    share.place.resize(shards);
  });
  for_parts([&](int64_t i, int64_t source, int64_t begin, int64_t) {
    Share& share = by_hops.at(source - i);
    share.start[source] = std::min(begin - source * w.block, w.block - share.width);
    share.place[i] = source * w.block + share.start[source] - (w.step * i + w.offset);
  });
  std::vector<Share> shares;
  for (auto& [hops, share] : by_hops) shares.push_back(std::move(share));
  return shares;
}

int64_t ReceivedElements(const std::vector<Share>& shares) {
  int64_t elements = 0;
  for (const Share& share : shares) elements += share.hops == 0 ? 0 : share.width;
  return elements;
}

int64_t ReceivedElements(const Window& w, const Pieces& pieces) {
  int64_t elements = 0;
  for (const Piece& piece : pieces.list) {
    if (!IsOwn(w, piece) && !piece.receivers.empty()) elements += piece.end - piece.begin;
  }
  return elements;
}

// Whether it pays to look up which device needs what.
bool Exact(const Window& w, const Pieces& pieces) {
  return w.step != w.block && !w.cyclic &&
         ReceivedElements(SharesOf(w)) < ReceivedElements(w, pieces);
}

// From the device `hops` shards further on, to every receiver.
Instruction* Permuted(Builder& builder, Instruction* value, const Window& w, int64_t hops,
                      const std::vector<int64_t>& receivers) {
  const int64_t shards = Product(w.axes);
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (const std::vector<int64_t>& group : sharding::ReplicaGroups(builder.mesh(), w.axes)) {
    for (int64_t i : receivers) {
      pairs.emplace_back(group[((i + hops) % shards + shards) % shards], group[i]);
    }
  }
  std::ranges::sort(pairs);
  return builder.CollectivePermute(value, pairs, w.axes);
}

// Every share goes to its place in the window, as far as the window has it from that device.
Instruction* FetchShares(Builder& builder, Instruction* value, const Window& w) {
  Instruction* zero = builder.Zero(value->shape().element_type);
  hlo::Shape shape = value->shape();
  shape.dims[w.dim] = w.width;
  Instruction* result = nullptr;
  for (const Share& share : SharesOf(w)) {
    Instruction* part = DynamicSliceDim(builder, value, w.dim,
                                        EntryOfShard(builder, w.axes, share.start), share.width);
    if (share.hops != 0) part = Permuted(builder, part, w, share.hops, share.receivers);
    part = AmongZeros(builder, part, w.dim, w.width + 2 * share.width, zero, [&] {
      return Plus(builder, EntryOfShard(builder, w.axes, share.place), share.width);
    });
    part = SliceDim(builder, part, w.dim, share.width, share.width + w.width);
    if (result != nullptr) {
      // Where the window is in the sender's block: i + hops, if i is this device.
      Instruction* from_block =
          Plus(builder, builder.Offset(w.axes, w.step - w.block), w.offset - share.hops * w.block);
      part = Select(builder, builder.InRange(shape, w.dim, from_block, 0, w.block), part, result);
    }
    result = part;
  }
  return result;
}

// One range for all, from the start of the own block.
Instruction* FetchRange(Builder& builder, Instruction* value, const Window& w,
                        const Pieces& pieces) {
  const int64_t shards = Product(w.axes);
  Instruction* zero = builder.Zero(value->shape().element_type);
  hlo::Shape shape = value->shape();
  std::vector<Instruction*> parts;
  for (const Piece& piece : pieces.list) {
    shape.dims[w.dim] = piece.end - piece.begin;
    if (piece.receivers.empty()) {
      parts.push_back(Spread(builder, zero, shape.dims));
      continue;
    }
    Instruction* part = SliceDim(builder, value, w.dim, piece.begin, piece.end);
    if (!IsOwn(w, piece)) part = Permuted(builder, part, w, piece.hops, piece.receivers);
    parts.push_back(part);
  }
  Instruction* joined = nullptr;
  if (parts.empty()) {
    shape.dims[w.dim] = w.width;
    joined = Spread(builder, zero, shape.dims);
  } else if (parts.size() == 1) {
    joined = parts[0];
  } else {
    shape.dims[w.dim] = pieces.limit - pieces.first;
    joined = builder.Add(Opcode::kConcatenate, shape, parts);
    hlo::SetDimensions(joined, {w.dim});
  }
  // Where the window begins, from the start of the own block: at the first shard
  // and at the last.
  const int64_t drift = w.step - w.block;
  if (!parts.empty()) {
    const int64_t last = w.offset + drift * (shards - 1);
    const int64_t first = std::min(w.offset, last);
    const int64_t limit = std::max(w.offset, last) + w.width;
    const int64_t low = std::max<int64_t>(pieces.first - first, 0);
    const int64_t high = std::max<int64_t>(limit - pieces.limit, 0);
    joined = PadDim(builder, joined, w.dim, low, high, zero);
    const int64_t begin = std::min(pieces.first, first);  // of `joined` now
    if (drift == 0) {
      joined = SliceDim(builder, joined, w.dim, w.offset - begin, w.offset - begin + w.width);
    } else {
      Instruction* start = Plus(builder, builder.Offset(w.axes, drift), w.offset - begin);
      joined = DynamicSliceDim(builder, joined, w.dim, start, w.width);
    }
  }
  return joined;
}

}  // namespace

Window WindowOfParts(int64_t dim, const Axes& axes, int64_t size, int64_t positions, int64_t offset,
                     int64_t stride) {
  const int64_t shards = Product(axes), part = CeilDiv(positions, shards);
  return {dim, axes, size, CeilDiv(size, shards), stride * part, offset, stride * (part - 1) + 1};
}

// Element e is at e * base_dilation + padding_low; position p covers what lies
// from p * stride on.
std::optional<SpatialWindow> SpatialWindowOf(const hlo::WindowDim& window, int64_t dim,
                                             int64_t size, int64_t positions,
                                             const sharding::Axes& axes) {
  SpatialWindow result{
      WindowOfParts(dim, axes, size, positions, -window.padding_low, window.stride), window};
  result.fetched.width += (window.size - 1) * window.window_dilation;
  const int64_t span = result.fetched.width, step = result.fetched.step;
  const int64_t holes = window.base_dilation;
  result.local.padding_low = result.local.padding_high = 0;
  if (holes == 1) return result;
  if (step % holes != 0) return std::nullopt;
  const int64_t low = window.padding_low;
  const int64_t first = low <= 0 ? CeilDiv(-low, holes) : -(low / holes);
  const int64_t at = low + first * holes;  // of that element, in [0, holes)
  if (at >= span) return std::nullopt;
  result.fetched.step = step / holes;
  result.fetched.offset = first;
  result.fetched.width = (span - 1 - at) / holes + 1;
  result.local.padding_low = at;
  result.local.padding_high = span - at - ((result.fetched.width - 1) * holes + 1);
  return result;
}

int64_t ReceivedElements(const Window& window) {
  const Pieces pieces = PiecesOf(window);
  return Exact(window, pieces) ? ReceivedElements(SharesOf(window))
                               : ReceivedElements(window, pieces);
}

Instruction* Fetch(Builder& builder, Instruction* value, const Window& w, Instruction* fill) {
  const Pieces pieces = PiecesOf(w);
  const int64_t shards = Product(w.axes);
  Instruction* joined =
      Exact(w, pieces) ? FetchShares(builder, value, w) : FetchRange(builder, value, w, pieces);
  if (fill == nullptr || w.cyclic) return joined;
  const bool before = w.offset < 0 || w.offset + w.step * (shards - 1) < 0;
  const bool behind = std::max(w.offset, w.offset + w.step * (shards - 1)) + w.width > w.size;
  if (!before && !behind) return joined;
  Instruction* inside = builder.InRange(joined->shape(), w.dim,
                                        Plus(builder, builder.Offset(w.axes, w.step), w.offset),
                                        before ? std::optional<int64_t>(0) : std::nullopt,
                                        behind ? std::optional<int64_t>(w.size) : std::nullopt);
  return Select(builder, inside, joined, fill);
}

}  // namespace tpusim::spmd

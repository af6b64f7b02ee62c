// Addresses of buffers in a memory that they share.
//
// Buffers that live at the same time may not overlap, and none moves. How high the heap
// grows is therefore more than what is live at most: holes between buffers are too small for
// what comes.
//
// The TPU compiler goes through the program: a buffer takes the smallest hole that has room when it
// begins to live, or else extends the heap (compiled programs of libtpu 0.0.42 name the address of
// every buffer: a decoder's 267 MB of live buffers take 398 MB so, to 0.1%). Two logits-sized
// arrays are then rarely in one place.
//
// Where a program would not fit so, buffers are packed: the largest first, each into the smallest
// hole that takes it among those that live with it, or on top of them. This leaves few holes.
// Looking at all that live together takes quadratic time in the worst case. So there is a
// limit to it, which only programs of tens of thousands of buffers reach; those that are left
// then, the smallest, are put on top of the highest that lives with them.
#ifndef TPUSIM_WORKLOADS_BUFFERS_HEAP_H_
#define TPUSIM_WORKLOADS_BUFFERS_HEAP_H_

#include <cstdint>
#include <vector>

#include "configs/units.h"

namespace tpusim::buffers {

struct HeapBuffer {
  // From the moment `begin` to before the moment `end`, in any unit; empty: it takes no place.
  int64_t begin = 0, end = 0;
  Bytes bytes{0};
};

// The problem of a memory plan: buffers of known sizes that share a memory, each for a known time,
// and none of which may move.
struct HeapProblem {
  std::vector<HeapBuffer> buffers;
  Bytes alignment{1};  // buffers begin at multiples of it where they are placed as they come
  Bytes room{0};       // how high the heap may grow: what fixed places, those of arguments, leave
};

struct Heap {
  std::vector<Bytes> offsets;  // by buffer
  Bytes height{0};
};

// In the order of their beginnings, and among equals in the given one: n log n. Buffers begin at
// multiples of `alignment`.
Heap PlaceInHeap(const std::vector<HeapBuffer>& buffers, Bytes alignment);

// The largest first, wherever they fit best; with limits::kHeapPairs looked at, the rest on top.
Heap PackHeap(const std::vector<HeapBuffer>& buffers);

// The first if there is room for it, else the lower of both.
Heap Solve(const HeapProblem& problem);

}  // namespace tpusim::buffers

#endif  // TPUSIM_WORKLOADS_BUFFERS_HEAP_H_

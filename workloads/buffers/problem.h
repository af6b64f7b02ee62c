// What a memory plan has to solve: buffers of known sizes that share a memory, each for a known
// time, and none of which may move.
#ifndef TPUSIM_WORKLOADS_BUFFERS_PROBLEM_H_
#define TPUSIM_WORKLOADS_BUFFERS_PROBLEM_H_

#include <cstdint>
#include <vector>

#include "configs/units.h"

namespace tpusim::buffers {

struct HeapBuffer {
  // From the moment `begin` to before the moment `end`, in any unit; empty: it takes no place.
  int64_t begin = 0, end = 0;
  Bytes bytes{0};
};

struct HeapProblem {
  std::vector<HeapBuffer> buffers;
  Bytes alignment{1};  // buffers begin at multiples of it where they are placed as they come
  Bytes room{0};       // how high the heap may grow: what fixed places, those of arguments, leave
};

struct Heap {
  std::vector<Bytes> offsets;  // by buffer
  Bytes height{0};
};

}  // namespace tpusim::buffers

#endif  // TPUSIM_WORKLOADS_BUFFERS_PROBLEM_H_

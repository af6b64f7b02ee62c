#include "workloads/buffers/heap.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "workloads/buffers/limits.h"

namespace tpusim::buffers {
namespace {

// Buffers that are placed, found by when they live. Moments are numbered from 0.
class PlacedBuffers {
 public:
  explicit PlacedBuffers(size_t moments)
      : leaves_(std::bit_ceil(std::max<size_t>(1, moments))), living_(2 * leaves_) {}

  void Add(size_t begin, size_t end, int32_t buffer) {
    starts_.emplace(begin, buffer);
    for (size_t l = begin + leaves_, r = end + leaves_; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) living_[l++].push_back(buffer);
      if (r % 2 == 1) living_[--r].push_back(buffer);
    }
  }

  // Calls `found` for each buffer that lives at some moment of [begin, end), once: at its
  // beginning, or begun later.
  template <typename Found>
  void ForEachDuring(size_t begin, size_t end, const Found& found) const {
    for (size_t node = begin + leaves_; node > 0; node /= 2) {
      for (const int32_t buffer : living_[node]) found(buffer);
    }
    for (auto it = starts_.lower_bound({begin + 1, -1}); it != starts_.end() && it->first < end;
         ++it) {
      found(it->second);
    }
  }

 private:
  size_t leaves_;
  // Buffers by node of a tree over moments: those that live throughout the node and not throughout
  // its parent.
  std::vector<std::vector<int32_t>> living_;
  std::set<std::pair<size_t, int32_t>> starts_;
};

// The height of the heap at every moment.
class Skyline {
 public:
  explicit Skyline(size_t moments)
      : leaves_(std::bit_ceil(std::max<size_t>(1, moments))),
        whole_(2 * leaves_),
        any_(2 * leaves_) {}

  // At least so high during all of [begin, end).
  void Raise(size_t begin, size_t end, Bytes height) {
    const size_t first = begin + leaves_, last = end - 1 + leaves_;
    for (size_t l = first, r = last + 1; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) RaiseNode(l++, height);
      if (r % 2 == 1) RaiseNode(--r, height);
    }
    for (size_t n = first / 2; n > 0; n /= 2) Update(n);
    for (size_t n = last / 2; n > 0; n /= 2) Update(n);
  }

  Bytes Highest(size_t begin, size_t end) const {
    Bytes highest(0);
    const size_t first = begin + leaves_, last = end - 1 + leaves_;
    for (size_t l = first, r = last + 1; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) highest = std::max(highest, any_[l++]);
      if (r % 2 == 1) highest = std::max(highest, any_[--r]);
    }
    for (size_t n = first / 2; n > 0; n /= 2) highest = std::max(highest, whole_[n]);
    for (size_t n = last / 2; n > 0; n /= 2) highest = std::max(highest, whole_[n]);
    return highest;
  }

 private:
  void RaiseNode(size_t n, Bytes height) {
    whole_[n] = std::max(whole_[n], height);
    any_[n] = std::max(any_[n], height);
  }
  void Update(size_t n) { any_[n] = std::max({whole_[n], any_[2 * n], any_[2 * n + 1]}); }

  size_t leaves_;
  std::vector<Bytes> whole_;  // all moments of a node are at least so high
  std::vector<Bytes> any_;    // the highest moment of a node
};

// The smallest hole between `taken`, sorted, that has room; above all of them if none has.
Bytes BestFit(const std::vector<std::pair<Bytes, Bytes>>& taken, Bytes bytes) {
  Bytes top(0), best(0), best_room(0);
  for (const auto& [from, to] : taken) {
    if (from > top && from - top >= bytes && (best_room == Bytes(0) || from - top < best_room)) {
      best = top;
      best_room = from - top;
    }
    top = std::max(top, to);
  }
  return best_room > Bytes(0) ? best : top;
}

// The free bytes of the heap below its end, while the program goes on.
class FreeSpace {
 public:
  // Returns the address of the smallest hole that has room, or the end of the heap if none has.
  Bytes Take(Bytes bytes) {
    const auto best = by_size_.lower_bound({bytes, Bytes(0)});
    if (best != by_size_.end()) {
      const auto [room, at] = *best;
      Remove(by_offset_.find(at));
      if (room > bytes) Insert(at + bytes, room - bytes);
      return at;
    }
    Bytes at = end_;
    if (!by_offset_.empty()) {
      const auto last = std::prev(by_offset_.end());
      if (last->first + last->second == end_) {
        at = last->first;
        Remove(last);
      }
    }
    end_ = at + bytes;
    return at;
  }

  void Give(Bytes at, Bytes bytes) {
    auto next = by_offset_.lower_bound(at);
    if (next != by_offset_.end() && next->first == at + bytes) {
      bytes += next->second;
      next = Remove(next);
    }
    if (next != by_offset_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        at = before->first;
        bytes += before->second;
        Remove(before);
      }
    }
    Insert(at, bytes);
  }

 private:
  using Holes = std::map<Bytes, Bytes>;  // sizes by offset
  void Insert(Bytes at, Bytes bytes) {
    by_offset_.emplace(at, bytes);
    by_size_.emplace(bytes, at);
  }
  Holes::iterator Remove(Holes::iterator hole) {
    by_size_.erase({hole->second, hole->first});
    return by_offset_.erase(hole);
  }

  Holes by_offset_;
  std::set<std::pair<Bytes, Bytes>> by_size_;  // and offset
  Bytes end_{0};
};

}  // namespace

Heap PlaceInHeap(const std::vector<HeapBuffer>& buffers, Bytes alignment) {
  // What ends at a moment makes room for what begins then.
  std::vector<std::tuple<int64_t, bool, int32_t>> changes;  // when, begins, which
  for (size_t n = 0; n < buffers.size(); ++n) {
    const HeapBuffer& b = buffers[n];
    if (b.begin == b.end || b.bytes == Bytes(0)) continue;
    changes.emplace_back(b.begin, true, static_cast<int32_t>(n));
    changes.emplace_back(b.end, false, static_cast<int32_t>(n));
  }
  std::sort(changes.begin(), changes.end());
  Heap heap;
  heap.offsets.resize(buffers.size());
  FreeSpace free;
  for (const auto& [moment, begins, n] : changes) {
    const Bytes aligned(RoundUp(buffers[n].bytes.value(), alignment.value()));
    if (begins) {
      heap.offsets[n] = free.Take(aligned);
      heap.height = std::max(heap.height, heap.offsets[n] + buffers[n].bytes);
    } else {
      free.Give(heap.offsets[n], aligned);
    }
  }
  return heap;
}

Heap PackHeap(const std::vector<HeapBuffer>& buffers) {
  int64_t effort = limits::kHeapPairs.most();
  std::vector<int64_t> moments;
  for (const HeapBuffer& b : buffers) {
    moments.push_back(b.begin);
    moments.push_back(b.end);
  }
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  const auto number_of = [&](int64_t moment) {
    return static_cast<size_t>(std::lower_bound(moments.begin(), moments.end(), moment) -
                               moments.begin());
  };

  std::vector<int32_t> largest_first(buffers.size());
  std::iota(largest_first.begin(), largest_first.end(), 0);
  const auto rank = [&](int32_t n) {
    const HeapBuffer& b = buffers[n];
    return std::tuple(-b.bytes.value(), b.begin - b.end, n);
  };
  std::sort(largest_first.begin(), largest_first.end(),
            [&](int32_t a, int32_t b) { return rank(a) < rank(b); });

  Heap heap;
  heap.offsets.resize(buffers.size());
  PlacedBuffers placed(moments.size());
  std::vector<std::pair<Bytes, Bytes>> taken;
  size_t next = 0;
  for (; next < largest_first.size() && effort >= 0; ++next) {
    const int32_t n = largest_first[next];
    const size_t begin = number_of(buffers[n].begin), end = number_of(buffers[n].end);
    if (begin == end) continue;
    taken.clear();
    placed.ForEachDuring(begin, end, [&](int32_t other) {
      taken.emplace_back(heap.offsets[other], heap.offsets[other] + buffers[other].bytes);
    });
    effort -= static_cast<int64_t>(taken.size());
    std::sort(taken.begin(), taken.end());
    heap.offsets[n] = BestFit(taken, buffers[n].bytes);
    heap.height = std::max(heap.height, heap.offsets[n] + buffers[n].bytes);
    placed.Add(begin, end, n);
  }
  if (next == largest_first.size()) return heap;
  limits::kHeapPairs.Reached();

  Skyline skyline(moments.size());
  for (size_t k = 0; k < largest_first.size(); ++k) {
    const int32_t n = largest_first[k];
    const size_t begin = number_of(buffers[n].begin), end = number_of(buffers[n].end);
    if (begin == end) continue;
    if (k >= next) heap.offsets[n] = skyline.Highest(begin, end);
    const Bytes top = heap.offsets[n] + buffers[n].bytes;
    skyline.Raise(begin, end, top);
    heap.height = std::max(heap.height, top);
  }
  return heap;
}

Heap Solve(const HeapProblem& problem) {
  Heap heap = PlaceInHeap(problem.buffers, problem.alignment);
  if (heap.height <= problem.room) return heap;
  Heap packed = PackHeap(problem.buffers);
  return packed.height < heap.height ? packed : heap;
}

}  // namespace tpusim::buffers

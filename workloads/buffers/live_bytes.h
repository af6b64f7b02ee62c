// The one sum of bytes that are live at every moment of a program.
#ifndef TPUSIM_WORKLOADS_BUFFERS_LIVE_BYTES_H_
#define TPUSIM_WORKLOADS_BUFFERS_LIVE_BYTES_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "configs/units.h"
#include "workloads/buffers/heap.h"

namespace tpusim::buffers {

// Returns the live bytes by moment, from 0 to before `moments`, in linear time.
inline std::vector<Bytes> LiveAt(const std::vector<HeapBuffer>& buffers, int64_t moments) {
  std::vector<Bytes> live(static_cast<size_t>(moments) + 1);
  for (const HeapBuffer& b : buffers) {
    live[b.begin] += b.bytes;
    live[b.end] -= b.bytes;
  }
  for (size_t m = 1; m < live.size(); ++m) live[m] += live[m - 1];
  live.pop_back();
  return live;
}

// While it is being changed. Sums over ranges of moments are added, the most of a range is asked
// for; both in logarithmic time. Ranges include both ends; empty ones are allowed.
class LiveBytes {
 public:
  explicit LiveBytes(int64_t moments)
      : leaves_(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, moments)))),
        added_(2 * leaves_),
        most_(2 * leaves_) {}
  explicit LiveBytes(const std::vector<Bytes>& live) : LiveBytes(std::ssize(live)) {
    std::copy(live.begin(), live.end(), added_.begin() + std::ssize(added_) / 2);
    std::copy(live.begin(), live.end(), most_.begin() + std::ssize(most_) / 2);
    for (size_t n = leaves_; --n > 0;) Update(n);
  }

  void Add(int64_t first, int64_t last, Bytes bytes) {
    if (first > last) return;
    const size_t from = static_cast<size_t>(first) + leaves_;
    const size_t to = static_cast<size_t>(last) + leaves_;
    for (size_t l = from, r = to + 1; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) AddTo(l++, bytes);
      if (r % 2 == 1) AddTo(--r, bytes);
    }
    for (size_t n = from / 2; n > 0; n /= 2) Update(n);
    for (size_t n = to / 2; n > 0; n /= 2) Update(n);
  }

  Bytes Most(int64_t first, int64_t last) const {
    if (first > last) return Bytes(0);
    return MostIn(1, 0, static_cast<int64_t>(leaves_) - 1, first, last);
  }
  Bytes Most() const { return most_[1]; }

 private:
  void AddTo(size_t n, Bytes bytes) {
    added_[n] += bytes;
    most_[n] += bytes;
  }
  void Update(size_t n) { most_[n] = added_[n] + std::max(most_[2 * n], most_[2 * n + 1]); }
  Bytes MostIn(size_t n, int64_t low, int64_t high, int64_t first, int64_t last) const {
    if (first <= low && high <= last) return most_[n];
    const int64_t middle = (low + high) / 2;
    if (last <= middle) return added_[n] + MostIn(2 * n, low, middle, first, last);
    if (first > middle) return added_[n] + MostIn(2 * n + 1, middle + 1, high, first, last);
    return added_[n] + std::max(MostIn(2 * n, low, middle, first, last),
                                MostIn(2 * n + 1, middle + 1, high, first, last));
  }

  size_t leaves_;
  std::vector<Bytes> added_;  // to all moments of a node
  std::vector<Bytes> most_;   // of a node, without what was added to nodes above it
};

}  // namespace tpusim::buffers

#endif  // TPUSIM_WORKLOADS_BUFFERS_LIVE_BYTES_H_

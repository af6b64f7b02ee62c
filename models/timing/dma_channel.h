// A DMA channel: the transfers that one stream has outstanding, and what happens to them.
//
// A channel serves its transfers in the order of issue, one at a time. For transfer X,
// issued at i(X):
//
//   ready     r(X) = i(X) + start latency (that of a read or of a write)
//   data begin  b(X) = max(r(X), e(X - 1)); a read that follows another transfer of its
//                      kernel: max(r(X), e(X - 1) + turnaround)
//   data end    e(X) = b(X) + time of the data
//
// so that the start latency of a queued transfer passes while the one before it is still
// moving. The state is the queue, whether the data of its first transfer move and since
// when, and when the last transfer ended.
//
// The state machine knows no clock and no bandwidth: it says when data may begin, and is
// told when they have begun and ended. Three drive it:
//
//   chip::Dma               the machine: data begin when the clock says so and end with
//                           their flow in the fluid
//   KernelTime              the closed form of a kernel alone on its chip: data end after
//                           bytes / rate
//   chip::TensorCore        takes the state out of the machine, drives it through the steps
//                           that repeat, and puts it back as it is then
//
// All three show the state with Visit to find out whether it recurs (steady/state.h).
#ifndef TPUSIM_MODELS_TIMING_DMA_CHANNEL_H_
#define TPUSIM_MODELS_TIMING_DMA_CHANNEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "configs/chip.h"
#include "configs/units.h"
#include "models/steady/state.h"
#include "models/timing/memory_bytes.h"

namespace tpusim::timing {

// A transfer, as a channel and a kernel describe it.
struct Transfer {
  bool write = false;    // IsWrite
  bool follows = false;  // another transfer of the same kernel
  Bytes bytes;
  MemoryBytes accessed;  // neither: VMEM to VMEM
  uint64_t number = 0;   // of the kernel's transfers, from 1 on
  int64_t step = -1;     // of the kernel

  void Visit(steady::StateVisitor& visitor) const {
    visitor.Same(write);
    visitor.Same(bytes);
    for (const Bytes in_memory : accessed.of) visitor.Same(in_memory);
    visitor.Same(follows);
  }
};

// `T` is a Transfer, perhaps with more.
template <typename T>
class DmaChannel {
 public:
  struct Item {
    T transfer;
    Picoseconds ready;
    double bytes = 0;  // yet to move; of the first: at `counted`
  };

  explicit DmaChannel(const configs::DmaParams& params)
      : start_latency_(params.start_latency),
        write_start_latency_(params.write_start_latency),
        turnaround_(params.turnaround) {}

  void Issue(Picoseconds at, const T& transfer) {
    if (head_ >= kMostEnded) {
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<ptrdiff_t>(head_));
      head_ = 0;
    }
    queue_.push_back({transfer, at + (transfer.write ? write_start_latency_ : start_latency_),
                      static_cast<double>(transfer.bytes.value())});
  }

  bool empty() const { return head_ == queue_.size(); }
  bool moving() const { return moving_; }  // the first one's data
  const Item& first() const { return queue_[head_]; }

  // Returns when the data of the first transfer may begin to move; they do not yet.
  Picoseconds NextBegin() const {
    const T& transfer = first().transfer;
    const bool turns = transfer.follows && !transfer.write;
    return std::max(first().ready, turns ? free_ : free_ - turnaround_);
  }
  void Begin(Picoseconds at) {
    moving_ = true;
    began_ = counted_ = at;
  }
  Picoseconds began() const { return began_; }
  Picoseconds counted() const { return counted_; }
  // The first one has `bytes` yet to move at this moment.
  void Count(Picoseconds at, double bytes) {
    counted_ = at;
    queue_[head_].bytes = bytes;
  }
  T End(Picoseconds at) {
    moving_ = false;
    free_ = at + turnaround_;
    return queue_[head_++].transfer;
  }

  // Leaves the channel empty, with nothing behind it.
  DmaChannel Take() {
    DmaChannel taken = *this;
    queue_.clear();
    head_ = 0;
    moving_ = false;
    return taken;
  }
  // Moves everything to a later time and to later steps of the kernel.
  void Shift(Picoseconds by, int64_t steps) {
    for (Item& item : outstanding()) {
      item.ready += by;
      item.transfer.step += steps;
    }
    began_ += by;
    counted_ += by;
    free_ += by;
  }

  // Returns the outstanding transfers in the order of issue.
  std::span<const Item> queue() const { return std::span(queue_).subspan(head_); }
  std::span<Item> outstanding() { return std::span(queue_).subspan(head_); }

  // Shows the state, but for how far the moving transfer is.
  void Visit(steady::StateVisitor& visitor) {
    visitor.Same(static_cast<int64_t>(queue().size()));
    visitor.Same(moving_);
    for (Item& item : outstanding()) {
      item.transfer.Visit(visitor);
      visitor.Pending(item.ready);
    }
    if (moving_) {
      visitor.Began(began_);
      return;
    }
    // What is issued from now on has a start latency of its own to wait for.
    const Picoseconds waits = empty() ? start_latency_ : Picoseconds(0);
    Picoseconds matters = free_ - waits;
    visitor.Pending(matters);
    free_ = matters + waits;
  }

 private:
  // Transfers that ended and are still stored: moving the others up costs more.
  static constexpr size_t kMostEnded = 16;

  Picoseconds start_latency_, write_start_latency_, turnaround_;
  std::vector<Item> queue_;
  size_t head_ = 0;  // the first of queue_ that has not ended
  bool moving_ = false;
  Picoseconds began_{0};
  Picoseconds counted_{0};
  Picoseconds free_{0};  // end of the last transfer and the turnaround
};

}  // namespace tpusim::timing

#endif  // TPUSIM_MODELS_TIMING_DMA_CHANNEL_H_

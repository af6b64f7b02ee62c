// The DMA engine of a device: transfers between its HBM and its VMEM.
//
// Every stream that moves data has a channel, and a channel serves its transfers
// in order, one at a time: bandwidth is shared between streams, not between the
// DMAs that one stream happens to have outstanding. For transfer X of a channel,
// issued at time i(X):
//
//   data begins   b(X) = max(i(X) + start latency, e(X - 1) + turnaround)
//                 (a write has a start latency of its own and no turnaround)
//   data ends     e(X) = b(X) + time of the flow
//
// so that the start latency of a queued transfer passes while the one before it
// is still moving. Alone in HBM a flow takes TransferTime(bytes, HBM rate);
// flows of other channels, of links and of the host share HBM with it.
#ifndef TPUSIM_MODELS_CHIP_DMA_H_
#define TPUSIM_MODELS_CHIP_DMA_H_

#include <cstdint>
#include <systemc>
#include <vector>

#include "configs/chip.h"
#include "models/chip/delay_queue.h"
#include "models/chip/fluid.h"
#include "models/chip/hbm.h"
#include "models/chip/probe.h"
#include "models/isa/program.h"

namespace tpusim::chip {

class TransferListener {
 public:
  virtual void TransferEnded(uint64_t tag) = 0;

 protected:
  ~TransferListener() = default;
};

struct Transfer {
  isa::MemorySpace from = isa::MemorySpace::kHbm;
  isa::MemorySpace to = isa::MemorySpace::kVmem;
  Bytes bytes;
  TransferListener* listener = nullptr;
  uint64_t tag = 0;
  int32_t op = -1;  // for the probe
  int64_t step = -1;
  bool follows = false;  // another transfer of the same kernel
};

// A transfer that was issued and has not ended.
struct Outstanding {
  Transfer transfer;
  double bytes = 0;     // yet to move
  Picoseconds wait{0};  // from now until its data may begin; 0 if it is moving
};

class Dma : public sc_core::sc_module, public FlowListener, public DelayListener {
 public:
  Dma(sc_core::sc_module_name name, Fluid& fluid, const Hbm& hbm, const configs::ChipParams& params,
      Probe& probe);

  // While building: a channel for one more stream.
  int32_t OpenChannel();
  void Issue(int32_t channel, const Transfer& transfer);

  // For whoever summarises many transfers as one (tensor_core.h). The bulk starts
  // when the channel is free, without a latency, and moves `bytes` evenly until
  // `until` if HBM has that much to give; `transfer` says what the books get.
  void IssueBulk(int32_t channel, const Transfer& transfer, double bytes, Picoseconds until);
  // In the order of issue.
  std::vector<Outstanding> OutstandingOf(int32_t channel);
  // Goes on with what was outstanding once, as if no time had passed since.
  void Resume(int32_t channel, const Outstanding& outstanding);

  void FlowEnded(uint64_t channel) override;
  void DelayEnded(uint64_t channel) override;

 private:
  struct Queued {
    Transfer transfer;
    Picoseconds ready;      // issue + start latency
    double bytes = 0;       // to move
    Picoseconds until{-1};  // a bulk's
  };
  struct Channel {
    std::vector<Queued> queue;  // front = the one being served; short
    bool moving = false;        // the front's data moves
    bool delayed = false;       // the front waits for its start latency
    Picoseconds began;          // of the moving one
    Picoseconds free;           // last end and the turnaround
    flow::FlowId flow;
  };
  // When the front's data may begin.
  static Picoseconds ReadyAt(const Channel& channel);
  void Serve(int32_t channel);

  Fluid& fluid_;
  const Hbm& hbm_;
  Probe& probe_;
  const Picoseconds start_latency_;
  const Picoseconds write_start_latency_;
  const Picoseconds turnaround_;
  const double vmem_copy_rate_;
  std::vector<Channel> channels_;
  DelayQueue delays_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_DMA_H_

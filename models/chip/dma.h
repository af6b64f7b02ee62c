// The DMA engine of a device: transfers between its HBM, its CMEM and its VMEM.
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
// flows of other channels, of links and of the host share HBM with it. What touches
// CMEM takes from its rate too (timing/memory_bytes.h).
#ifndef TPUSIM_MODELS_CHIP_DMA_H_
#define TPUSIM_MODELS_CHIP_DMA_H_

#include <cstdint>
#include <optional>
#include <systemc>
#include <vector>

#include "configs/chip.h"
#include "models/chip/cmem.h"
#include "models/chip/hbm.h"
#include "models/events/delay_queue.h"
#include "models/events/fluid.h"
#include "models/events/probe.h"
#include "models/events/sim_time.h"
#include "models/isa/program.h"
#include "models/timing/memory_bytes.h"

namespace tpusim::chip {

class TransferListener {
 public:
  virtual void TransferEnded(uint64_t tag) = 0;

 protected:
  ~TransferListener() = default;
};

struct Transfer {
  bool write = false;  // timing::IsWrite
  Bytes bytes;
  timing::MemoryBytes touched;  // neither: VMEM to VMEM
  TransferListener* listener = nullptr;
  uint64_t tag = 0;
  int32_t op = -1;  // for the probe
  int64_t step = -1;
  bool follows = false;  // another transfer of the same kernel

  void Visit(steady::StateVisitor& visitor) const;
};

// A transfer that was issued and has not ended.
struct Outstanding {
  Transfer transfer;
  double bytes = 0;     // yet to move
  Picoseconds wait{0};  // from now until its start latency has passed
};

// What a channel is doing, relative to now.
struct ChannelState {
  std::vector<Outstanding> queue;        // in the order of issue
  std::optional<Picoseconds> moved_for;  // the first one moves, since so long
  Picoseconds free{0};                   // from now until the turnaround after the last one
};

class Dma : public sc_core::sc_module,
            public events::FlowListener,
            public events::DelayListener,
            public steady::Stateful {
 public:
  Dma(sc_core::sc_module_name name, events::Fluid& fluid, const Hbm& hbm, const Cmem& cmem,
      const configs::ChipParams& params, events::Probe& probe);

  // While building: a channel for one more stream.
  int32_t OpenChannel();
  void Issue(int32_t channel, const Transfer& transfer);

  // For whoever summarises transfers that repeat as one flow (tensor_core.h).
  //
  // Shows the state of a channel and how much of its moving transfer is left.
  void VisitAlone(int32_t channel, steady::StateVisitor& visitor);
  // False if the first transfer ends at this moment, which has to be seen first.
  bool CanSuspend(int32_t channel) const;
  // Takes everything out of the channel.
  ChannelState Suspend(int32_t channel);
  // A suspended channel moves `moved` per `period`, `times` over, if HBM and CMEM have
  // that much to give.
  void BeginBulk(int32_t channel, const timing::MemoryBytes& moved, Picoseconds period,
                 int64_t times);
  // By more than this share.
  bool BulkIsSlowed(int32_t channel, double share);
  void EndBulk(int32_t channel, double hbm, double cmem);
  // Goes on with `state`, as if it were now that it describes.
  void Resume(int32_t channel, const ChannelState& state);

  // What the transfers that have ended touched.
  const timing::MemoryBytes& Ended(int32_t channel) const { return channels_[channel].ended; }
  void AddEnded(int32_t channel, const timing::MemoryBytes& bytes) {
    channels_[channel].ended += bytes;
  }
  // By HBM and CMEM together, as the rates below.
  double Carried();
  // Starts and ends of flows on HBM and CMEM that are not the channel's.
  uint64_t OtherPopulation(int32_t channel) const;
  double OtherRates(int32_t channel) const;                // of them, as last solved
  Picoseconds NextOtherCompletion(int32_t channel) const;  // as things are
  void Watch(events::ConditionsListener* listener);

  Picoseconds turnaround() const { return turnaround_; }
  Picoseconds StartLatency(bool write) const {
    return write ? write_start_latency_ : start_latency_;
  }

  void FlowEnded(uint64_t channel) override;
  void DelayEnded(uint64_t channel) override;
  void Visit(steady::StateVisitor& visitor) override;
  void VisitFlow(uint64_t channel, steady::StateVisitor& visitor) override {
    visitor.Same(static_cast<int64_t>(channel));
  }
  int64_t OrderOf(uint64_t channel) const override { return static_cast<int64_t>(channel); }
  void VisitDelay(uint64_t channel, steady::StateVisitor& visitor) override {
    visitor.Same(static_cast<int64_t>(channel));
  }

 private:
  struct Queued {
    Transfer transfer;
    Picoseconds ready;  // issue + start latency
    double bytes = 0;   // to move
  };
  struct Channel {
    std::vector<Queued> queue;       // front = the one being served; short
    bool moving = false;             // the front's data moves
    bool delayed = false;            // the front waits for its start latency
    Picoseconds began;               // of the moving one
    Picoseconds free;                // last end and the turnaround
    flow::FlowId flow{~0U, 0};       // the moving one, or the last; bulk: on HBM
    flow::FlowId bulk_cmem{~0U, 0};  // bulk: on CMEM
    double bulk_rate = 0, bulk_cmem_rate = 0;
    timing::MemoryBytes ended;
    uint64_t flows = 0;  // starts and ends, counted by HBM and by CMEM
  };
  // When the front's data may begin.
  static Picoseconds ReadyAt(const Channel& channel);
  void VisitChannel(Channel& channel, steady::StateVisitor& visitor);
  void Serve(int32_t channel);
  void Move(int32_t channel);  // the front's data, from now on
  flow::FlowId Start(int32_t channel, double bytes, const Transfer& transfer);
  // How many memories count the starts and ends of its flow.
  static uint64_t Counts(const Transfer& transfer);

  events::Fluid& fluid_;
  const Hbm& hbm_;
  const Cmem& cmem_;
  const configs::ChipParams& params_;
  events::Probe& probe_;
  const Picoseconds start_latency_;
  const Picoseconds write_start_latency_;
  const Picoseconds turnaround_;
  const double vmem_copy_rate_;
  std::vector<Channel> channels_;
  events::DelayQueue delays_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_DMA_H_

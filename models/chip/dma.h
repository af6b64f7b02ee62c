// The DMA engine of a device: transfers between its memories.
//
// Every stream that moves data has a channel (timing/dma_channel.h): bandwidth is shared between
// streams, not between the DMAs that one stream happens to have outstanding. Alone in HBM a flow
// takes TransferTime(bytes, HBM rate); flows of other channels, of links and of the host share HBM
// with it. What accesses another memory with a rate takes from its rate too
// (timing/memory_bytes.h).
#ifndef TPUSIM_MODELS_CHIP_DMA_H_
#define TPUSIM_MODELS_CHIP_DMA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <systemc>
#include <vector>

#include "configs/chip.h"
#include "configs/memory.h"
#include "models/chip/dma_interface.h"
#include "models/events/delay_queue.h"
#include "models/events/fluid.h"
#include "models/events/probe.h"
#include "models/events/sim_time.h"
#include "models/isa/program.h"
#include "models/timing/memory_bytes.h"

namespace tpusim::chip {

class Dma : public sc_core::sc_module,
            public BulkDmaInterface,
            public events::FlowListener,
            public events::DelayListener,
            public steady::Stateful {
 public:
  // Builds a channel for each stream of the device.
  Dma(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params,
      size_t channels, events::Probe& probe);

  sc_core::sc_port<MemoryInterface, 0> memories{"memories"};  // as configs::kMemories

  void Issue(int32_t channel, const DmaTransfer& transfer) override;
  void VisitAlone(int32_t channel, steady::StateVisitor& visitor) override;
  bool CanSuspend(int32_t channel) const override;
  Channel Suspend(int32_t channel) override;
  void BeginBulk(int32_t channel, const timing::MemoryBytes& moved, Picoseconds period,
                 int64_t times) override;
  bool BulkIsSlowed(int32_t channel, double share) override;
  void EndBulk(int32_t channel, const timing::MemoryShares& moved) override;
  void Resume(int32_t channel, const Channel& state) override;
  const timing::MemoryBytes& Ended(int32_t channel) const override {
    return channels_[channel].ended;
  }
  void AddEnded(int32_t channel, const timing::MemoryBytes& bytes) override {
    channels_[channel].ended += bytes;
  }
  double Carried() override;
  uint64_t OtherPopulation(int32_t channel) const override;
  double OtherRates(int32_t channel) const override;
  Picoseconds NextOtherCompletion(int32_t channel) const override;
  void Watch(events::ConditionsListener* listener) override;

  void FlowEnded(uint64_t channel) override;
  void DelayEnded(uint64_t channel) override;
  void Visit(steady::StateVisitor& visitor) override;
  void VisitFlow(uint64_t channel, steady::StateVisitor& visitor) override {
    visitor.Same(static_cast<int64_t>(channel));
  }
  int64_t OrderOfFlow(uint64_t channel) const override { return static_cast<int64_t>(channel); }
  int64_t OrderOf(uint64_t channel) const override { return static_cast<int64_t>(channel); }
  void VisitDelay(uint64_t channel, steady::StateVisitor& visitor) override {
    visitor.Same(static_cast<int64_t>(channel));
  }

 private:
  // A channel with its flows in the machine.
  struct Served {
    explicit Served(const configs::DmaParams& params) : state(params) {}

    Channel state;
    bool delayed = false;       // the first transfer waits until its data may begin
    flow::FlowId flow{~0U, 0};  // the moving one, or the last
    // A flow on one memory that replaces all transfers of steps that repeat.
    struct Bulk {
      flow::FlowId flow{~0U, 0};
      double rate = 0;  // 0: none
    };
    configs::PerMemory<Bulk> bulk;
    timing::MemoryBytes ended;
    uint64_t flows = 0;  // starts and ends, counted by each memory
  };
  // A memory that has a rate.
  struct Rated {
    isa::MemorySpace space;
    flow::ResourceId resource;
  };
  void end_of_elaboration() override;
  // Returns the channel's flow on one of the memories.
  static flow::FlowId FlowOn(const Served& served, const Rated& memory);
  void VisitChannel(Served& served, steady::StateVisitor& visitor);
  void Serve(int32_t channel);
  void StartFlow(int32_t channel);  // of the first transfer
  flow::FlowId Start(int32_t channel, double bytes, const DmaTransfer& transfer);
  // Returns how many memories count the starts and ends of the transfer's flow.
  static uint64_t Counts(const DmaTransfer& transfer);

  events::Fluid& fluid_;
  const configs::ChipParams& params_;
  events::Probe& probe_;
  const double vmem_copy_rate_;
  std::vector<Rated> rated_;  // those that the chip has
  std::vector<Served> channels_;
  events::DelayQueue delays_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_DMA_H_

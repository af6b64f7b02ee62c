// Interfaces of the DMA engine of a device: transfers between its memories, and for the TensorCore
// one flow in place of all transfers of steps that repeat.
#ifndef TPUSIM_MODELS_CHIP_DMA_INTERFACE_H_
#define TPUSIM_MODELS_CHIP_DMA_INTERFACE_H_

#include <cstdint>
#include <systemc>

#include "configs/units.h"
#include "models/chip/interfaces.h"
#include "models/events/fluid.h"
#include "models/steady/state.h"
#include "models/timing/dma_channel.h"
#include "models/timing/memory_bytes.h"

namespace tpusim::chip {

struct DmaTransfer : timing::Transfer {
  TransferListener* listener = nullptr;  // is told the transfer's number
  int32_t op = -1;                       // for the probe

  void Visit(steady::StateVisitor& visitor) {
    timing::Transfer::Visit(visitor);
    visitor.Same(listener);
    visitor.Named(isa::NameKind::kOp, op);
  }
};

using Channel = timing::DmaChannel<DmaTransfer>;

class DmaInterface : public virtual sc_core::sc_interface {
 public:
  virtual void Issue(int32_t channel, const DmaTransfer& transfer) = 0;
};

// Interface for a TensorCore that replaces transfers that repeat by one flow per memory
// (tensor_core.h).
class BulkDmaInterface : public DmaInterface {
 public:
  // Shows the state of a channel and how much of its moving transfer is left.
  virtual void VisitAlone(int32_t channel, steady::StateVisitor& visitor) = 0;
  // Returns false if the first transfer ends at this moment, which has to be seen first.
  virtual bool CanSuspend(int32_t channel) const = 0;
  // Takes everything out of the channel, as it is now.
  virtual Channel Suspend(int32_t channel) = 0;
  // A suspended channel moves `moved` per `period`, `times` over, if the memories have
  // that much to give.
  virtual void BeginBulk(int32_t channel, const timing::MemoryBytes& moved, Picoseconds period,
                         int64_t times) = 0;
  // Returns whether the flows are slower than was asked for by more than `share`.
  virtual bool BulkIsSlowed(int32_t channel, double share) = 0;
  // `moved`: by the transfers that the flows stood for.
  virtual void EndBulk(int32_t channel, const timing::MemoryShares& moved) = 0;
  // Goes on with `state`, as it is now.
  virtual void Resume(int32_t channel, const Channel& state) = 0;

  // Returns the bytes that all transfers so far accessed, by memory.
  virtual const timing::MemoryBytes& Ended(int32_t channel) const = 0;
  virtual void AddEnded(int32_t channel, const timing::MemoryBytes& bytes) = 0;
  // Returns the bytes that all rated memories together have carried.
  virtual double Carried() = 0;
  // Starts and ends of flows on the memories that are not the channel's.
  virtual uint64_t OtherPopulation(int32_t channel) const = 0;
  virtual double OtherRates(int32_t channel) const = 0;                // of them, as last solved
  virtual Picoseconds NextOtherCompletion(int32_t channel) const = 0;  // as things are
  virtual void Watch(events::ConditionsListener* listener) = 0;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_DMA_INTERFACE_H_

// Interfaces between the modules of a device.
//
// A module does not know the others: it has ports (sc_port) over the interfaces below,
// and Device binds them while the pod is built (device.cc). SystemC completes the
// bindings at elaboration and ends the program with the name of a port that was left
// unbound, so ports are used from end_of_elaboration on, never in a constructor. The ids
// of resources are constant from then on; modules ask for them once.
//
// What only moves simulated time (models/events: the fluid, faults, probes) is no
// hardware and is handed to constructors. Requests name a listener, which is called when
// what was asked for is done.
#ifndef TPUSIM_MODELS_CHIP_INTERFACES_H_
#define TPUSIM_MODELS_CHIP_INTERFACES_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <systemc>

#include "absl/status/status.h"
#include "configs/units.h"
#include "models/events/probe.h"
#include "models/flow/network.h"
#include "models/isa/program.h"

namespace tpusim::chip {

class WorkListener {
 public:
  virtual void WorkEnded() = 0;

 protected:
  ~WorkListener() = default;
};

class TransferListener {
 public:
  virtual void TransferEnded(uint64_t tag) = 0;

 protected:
  ~TransferListener() = default;
};

class StepListener {
 public:
  virtual void StepBegan() = 0;

 protected:
  ~StepListener() = default;
};

class FlagListener {
 public:
  virtual void FlagReached() = 0;

 protected:
  ~FlagListener() = default;
};

// HBM, CMEM, VMEM.
class MemoryInterface : public virtual sc_core::sc_interface {
 public:
  // Returns nullopt if the memory limits no transfers, or the chip does not have it.
  virtual std::optional<flow::ResourceId> resource() const = 0;
  // `what` is named in errors: by how much the capacity is exceeded.
  virtual absl::Status Alloc(std::string_view what, Bytes bytes) = 0;
  virtual absl::Status Free(std::string_view what, Bytes bytes) = 0;
  virtual Bytes live() const = 0;
};

// An execution slot of the TensorCore: matrix, vector, cross-lane.
class SlotInterface : public virtual sc_core::sc_interface {
 public:
  virtual void Occupy(Picoseconds start, Picoseconds duration) = 0;
};

// A server of the fluid that transfers share: additions of a VPU or of SparseCores, the way
// between the devices of a chip.
class ServerInterface : public virtual sc_core::sc_interface {
 public:
  virtual flow::ResourceId resource() const = 0;
};

// A link in two directions that transfers between slices use on both sides: PCIe and network cards.
// It represents `multiplicity` equal ones.
class DuplexInterface : public virtual sc_core::sc_interface {
 public:
  virtual flow::ResourceId outward() const = 0;  // away from the chip
  virtual flow::ResourceId inward() const = 0;
  virtual int64_t multiplicity() const = 0;
};
class NicInterface : public DuplexInterface {
 public:
  // Counts bytes of each of `senders` equal devices, through one of the equal cards.
  virtual void Sent(Bytes bytes, int64_t senders) = 0;
  virtual void Received(Bytes bytes, int64_t senders) = 0;
};

// Transfers between a device and its host.
struct HostTransfer {
  isa::HostDma dma;
  flow::ResourceId hbm;      // of the device
  int64_t multiplicity = 1;  // equal devices that this one represents
  int32_t op = -1;
  events::Probe* probe = nullptr;
  TransferListener* listener = nullptr;
};
class HostInterface : public virtual sc_core::sc_interface {
 public:
  virtual void Issue(const HostTransfer& transfer) = 0;
};

// The time of a kernel or block, by resource: its blocks by the fuller slots, the bytes of its
// windows as far as blocks waited for them, and latency: launch, DMA latencies and the overhead of
// steps.
struct TimeSplit {
  Picoseconds mxu{0}, vpu{0}, hbm{0}, latency{0};
};

// The TensorCore, which must be idle. The listener is called at the end, once.
class ComputeInterface : public virtual sc_core::sc_interface {
 public:
  // The kernel must live until the end. Transfers go through `channel` of the DMA engine.
  // Error: the kernel's windows do not fit in VMEM.
  virtual absl::Status Run(const isa::Kernel& kernel, int32_t op, int32_t channel,
                           WorkListener* listener) = 0;
  virtual void Run(const isa::Block& block, int32_t op, WorkListener* listener) = 0;
  // Splits the duration of what ended last. Its kernel must still live.
  virtual TimeSplit Split(Picoseconds duration) const = 0;
  // The listener is called once, when a kernel that polls begins its next step; not if it is
  // forgotten before.
  virtual void TellStep(StepListener* listener) = 0;
  virtual void ForgetStep(StepListener* listener) = 0;
};

// The way from a device to others. Both return at once; flags tell the ends. `device` is
// the sender, `in` where the stream is: it says which flags are meant.
class NetworkInterface : public virtual sc_core::sc_interface {
 public:
  virtual void Send(int32_t device, const isa::Rdma& rdma, const isa::RouteEnd& route,
                    const events::StreamRef& stream, int32_t op, const isa::Iteration& in) = 0;
  virtual void Signal(int32_t device, const isa::Signal& signal, const isa::RouteEnd& route,
                      const isa::Iteration& in) = 0;
};

class FlagsInterface : public virtual sc_core::sc_interface {
 public:
  // Raises the flag by one, `times` over, and wakes a waiter if that is enough.
  virtual void Raise(int32_t flag, int64_t times) = 0;
  // Returns true if the count has been taken; false if the listener will be called when it has.
  virtual bool Take(int32_t flag, int64_t count, FlagListener* listener) = 0;
};

// A stream, as other streams see it.
class StreamInterface : public virtual sc_core::sc_interface {
 public:
  virtual const events::StreamRef& ref() const = 0;
  // Queues a body; `token` -1 is the program itself. The body must outlive the run.
  virtual void Enqueue(const isa::Body& body, int32_t token, const isa::Iteration& in) = 0;
  virtual void Wake() = 0;
  // Another stream does nothing but wait for what this token names, if that is given to this one.
  virtual void Awaited(int32_t token) = 0;
};

// Forks and joins of the streams of a device.
class ForkJoinInterface : public virtual sc_core::sc_interface {
 public:
  // Gives the body to the stream. False if the token is still in use.
  virtual bool Fork(const isa::StreamId& stream, const isa::Body& body, int32_t token,
                    const isa::Iteration& in) = 0;
  // The body of this token has been executed.
  virtual void Finish(int32_t token) = 0;
  enum class Joined { kYes, kWait, kNeverStarted };
  // kYes frees the token; kWait wakes the stream later, when it is freed.
  virtual Joined Join(int32_t token, StreamInterface* waiter) = 0;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_INTERFACES_H_

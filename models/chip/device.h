// A device, the unit that JAX counts: its memories, engines and streams, built from the modules of
// this folder and connected by their ports.
//
// The room answers what one chip does with its instruction streams. The modules are children of the
// module in whose constructor the device is made, `pod.chip3.mxu`; on chips with several devices
// the names of all but the first carry their number: `pod.chip3.mxu1`. Nothing ticks: a module
// sleeps until a timer, a flow or another module wakes it. Modules know each other by the
// interfaces of interfaces.h alone, so that each is tested by itself; pointers between modules were
// rejected, because a test then needs the whole device. `Device` is the entry point.
#ifndef TPUSIM_MODELS_CHIP_DEVICE_H_
#define TPUSIM_MODELS_CHIP_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "configs/memory.h"
#include "models/chip/dma.h"
#include "models/chip/fork_join.h"
#include "models/chip/memory.h"
#include "models/chip/stream.h"
#include "models/chip/sync_flags.h"
#include "models/chip/tensor_core.h"
#include "models/chip/units.h"

namespace tpusim::chip {

struct DeviceContext {
  int32_t device = 0;
  int32_t index_on_chip = 0;
  int64_t multiplicity = 1;  // equal devices of the pod that this one represents
  bool every_step = false;   // run kernels step by step (tensor_core.h)
  const configs::ChipParams& params;
  const isa::PodProgram& program;
  const std::vector<isa::StreamId>& stream_ids;  // tensor_core[0] first
  events::Fluid& fluid;
  HostInterface& host_link;
  NetworkInterface& network;
  LoopListener* loops = nullptr;  // null: no listener
  events::Faults& faults;
  events::Probe& probe;
  events::RunQueue& ready;
  events::Causes* causes = nullptr;  // null: they are not kept
};

class Device {
 public:
  explicit Device(const DeviceContext& context);
  Device(const Device&) = delete;

  int32_t id() const { return id_; }
  Memory& memory(isa::MemorySpace space) { return *memories_[configs::IndexOf(space)]; }
  Slot& mxu() { return mxu_; }
  Vpu& vpu() { return vpu_; }
  SyncFlags& flags() { return flags_; }
  const SyncFlags& flags() const { return flags_; }
  Server* die_link() { return die_link_.get(); }        // null: alone on its chip
  Server* sparse_core() { return sparse_core_.get(); }  // null: there is none
  const std::vector<std::unique_ptr<Stream>>& streams() const { return streams_; }
  Stream& main_stream() { return *streams_.front(); }

 private:
  void AddStreams(const DeviceContext& context);
  void Bind(const DeviceContext& context);

  const int32_t id_;
  // one for each of configs::kMemories
  std::vector<std::unique_ptr<Memory>> memories_;
  Slot mxu_;
  Vpu vpu_;
  Slot xlu_;
  Dma dma_;
  TensorCore tensor_core_;
  SyncFlags flags_;
  std::unique_ptr<Server> die_link_, sparse_core_;
  ForkJoin fork_join_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

// "tensor_core0", "collective2": how a stream is called in names and messages.
std::string StreamName(const isa::StreamId& id);

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_DEVICE_H_

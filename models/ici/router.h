// The router of a chip: owns the links that leave it and sends what its devices send.
//
// A remote DMA is one flow through everything that it occupies at once:
//
//   every link of its route     weight 1; between two devices of one chip, whose
//                               route has none, the sender's way to its chip;
//                               between two slices PCIe of the sender's chip, its
//                               host's network card, the card of the receiver's
//                               host, PCIe of the receiver's chip
//   HBM of the sender           weight 1, if it reads from there
//   HBM of the receiver         weight 1, if it writes there; 2 if it adds (the
//                               partial sum is read and the sum written)
//   VPU of the receiver         additions per byte, if it adds; its SparseCores
//                               where they run the collective
//
// What one stream sends over one route leaves in the order of issue, one after the other: a
// queue of descriptors. What it sends over other routes, and other streams, share the links.
//
// Cut-through: the flow starts on all links together, and everything
// arrives hops x hop latency later than it left. So
//
//   sender's flag      at the end of the flow
//   receiver's flag    end of the flow + hops x hop latency + reduce tail
//                      (timing::ReduceTail; 0 if nothing is added)
//
// The hop latency is measured from issue to arrival of small messages and
// contains the DMA's start. A signal is all latency: hops x hop latency. The way
// between two devices of a chip counts as one hop; nothing is published of its latency.
// From slice to slice it is timing::DcnLatency instead of hops.
//
// Links, resources and flags of other chips are reached through the Fabric, which knows
// every device and every link of the pod.
#ifndef TPUSIM_MODELS_ICI_ROUTER_H_
#define TPUSIM_MODELS_ICI_ROUTER_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <systemc>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "configs/chip.h"
#include "configs/topology.h"
#include "models/chip/interfaces.h"
#include "models/events/causes.h"
#include "models/events/delay_queue.h"
#include "models/events/fluid.h"
#include "models/ici/fabric.h"
#include "models/ici/link.h"

namespace tpusim::ici {

// A transfer that has arrived, for the recorder.
struct RdmaRecord {
  int32_t source = 0;
  int32_t destination = 0;
  const isa::Rdma* rdma = nullptr;
  const isa::RouteEnd* route = nullptr;
  events::StreamRef stream;  // of the sender
  int32_t op = -1;
  Picoseconds start;    // of the flow
  Picoseconds end;      // last byte has left
  Picoseconds arrival;  // receiver's flag
};

class FabricProbe {
 public:
  virtual ~FabricProbe() = default;
  // Called at the end of the flow; `arrival` is still to come.
  virtual void RdmaEnded(const RdmaRecord& record) = 0;
};

// The rates of the links to be built, by direction.
using LinkRates = std::array<std::optional<BytesPerSecond>, configs::kDirections>;

class Router : public sc_core::sc_module,
               public chip::NetworkInterface,
               public events::FlowListener,
               public events::DelayListener,
               public steady::Stateful {
 public:
  Router(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params,
         int64_t chip, const LinkRates& links, const isa::PodProgram& program, FabricProbe& probe,
         events::Causes* causes = nullptr);

  sc_core::sc_port<FabricInterface> fabric{"fabric"};

  void Send(int32_t device, const isa::Rdma& rdma, const isa::RouteEnd& route,
            const events::StreamRef& stream, int32_t op, const isa::Iteration& in) override;
  void Signal(int32_t device, const isa::Signal& signal, const isa::RouteEnd& route,
              const isa::Iteration& in) override;

  // Returns the link, or null if none was built.
  Link* link(configs::Direction direction) { return links_[static_cast<int>(direction)].get(); }

  void FlowEnded(uint64_t slot) override;
  void DelayEnded(uint64_t slot) override;
  // Transfers are shown where they wait: with their flow, then with their arrival.
  void Visit(steady::StateVisitor&) override {}
  void VisitFlow(uint64_t slot, steady::StateVisitor& visitor) override;
  int64_t OrderOfFlow(uint64_t slot) const override {
    return pending_[slot].record.stream.ordinal;  // one of a stream moves at a time (Lane)
  }
  int64_t OrderOf(uint64_t slot) const override;
  void VisitDelay(uint64_t slot, steady::StateVisitor& visitor) override;

 private:
  // A transfer or signal under way.
  struct PendingSend {
    RdmaRecord record;
    const Path* path = nullptr;
    int32_t route = -1;
    int32_t flag = -1;       // of the receiver
    int32_t sent_flag = -1;  // of the sender
    int64_t next = -1;       // slot of what moves once this has left
    events::Causes::Ref cause;
  };
  // Transfers of one stream of a device over one route, which leave in order.
  struct Lane {
    int32_t device = 0;
    int32_t stream = 0;
    int32_t route = 0;

    bool operator==(const Lane&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Lane& lane) {
      return H::combine(std::move(h), lane.device, lane.stream, lane.route);
    }
  };
  static Lane LaneOf(const RdmaRecord& record) {
    return {record.source, record.stream.ordinal, record.rdma->route};
  }
  // Its turn has come.
  void Start(uint32_t slot);
  // Returns the time until data sent over a route arrives.
  Picoseconds Latency(const Path& path, int32_t route) const;
  // Returns how many of all equal transfers reach those that the receiver represents.
  int64_t TransfersTo(const Path::Receiver& receiver);
  void UseDcn(const RdmaRecord& record, const Path& path);
  void UseReceiver(const isa::Rdma& rdma, const Path::Receiver& receiver);
  // Extends the transfer's cause up to `end` and makes it the cause of what it releases.
  void Spend(PendingSend& pending, Picoseconds end, events::Spent spent);
  uint32_t NewSlot();

  events::Fluid& fluid_;
  const configs::ChipParams& params_;
  const isa::PodProgram& program_;
  FabricProbe& probe_;
  events::Causes* const causes_;  // null: they are not kept
  std::array<std::unique_ptr<Link>, configs::kDirections> links_;
  std::vector<PendingSend> pending_;
  std::vector<uint32_t> free_;
  absl::flat_hash_map<Lane, uint32_t> last_;  // slots; looked up, never iterated over
  std::vector<flow::ResourceUse> uses_;               // scratch
  events::DelayQueue arrivals_;
};

}  // namespace tpusim::ici

#endif  // TPUSIM_MODELS_ICI_ROUTER_H_

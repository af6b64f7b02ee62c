// One direction of one inter-chip link: leaves a chip towards a neighbour.
//
// A resource of the fluid with the rate that transfers reach in practice
// (timing::EffectiveLinkRate), and books of what was sent into it and what came
// out at the other end. Latency belongs to the route (router.h), not to the link.
#ifndef TPUSIM_MODELS_ICI_LINK_H_
#define TPUSIM_MODELS_ICI_LINK_H_

#include <systemc>

#include "configs/topology.h"
#include "configs/units.h"
#include "models/chip/fluid.h"
#include "models/chip/traffic.h"

namespace tpusim::ici {

class Link : public sc_core::sc_module, public steady::Stateful {
 public:
  // Stands for `copies` equal links of the pod.
  Link(sc_core::sc_module_name name, chip::Fluid& fluid, const configs::Link& id,
       BytesPerSecond rate, int64_t copies);

  const configs::Link& id() const { return id_; }
  flow::ResourceId resource() const { return resource_; }

  int64_t copies() const { return copies_; }

  // By each of `senders` equal devices, over one of the copies.
  void Sent(Bytes bytes, int64_t senders) { traffic_.sent += bytes * senders; }
  void Received(Bytes bytes, int64_t senders) { traffic_.received += bytes * senders; }
  void Visit(steady::StateVisitor& visitor) override { traffic_.Visit(visitor); }
  // Of one link.
  Bytes sent() const { return PerCopy(traffic_.sent); }
  Bytes received() const { return PerCopy(traffic_.received); }

 private:
  Bytes PerCopy(Bytes bytes) const;

  const configs::Link id_;
  const flow::ResourceId resource_;
  const int64_t copies_;
  chip::Traffic traffic_;  // over all copies
};

}  // namespace tpusim::ici

#endif  // TPUSIM_MODELS_ICI_LINK_H_

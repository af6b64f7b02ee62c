// One direction of one inter-chip link: leaves a chip towards a neighbour.
//
// A resource of the fluid with the rate that transfers reach in practice
// (timing::EffectiveLinkRate), and counters of what was sent into it and what came
// out at the other end. Latency belongs to the route (router.h), not to the link.
#ifndef TPUSIM_MODELS_ICI_LINK_H_
#define TPUSIM_MODELS_ICI_LINK_H_

#include <systemc>

#include "configs/topology.h"
#include "configs/units.h"
#include "models/events/fluid.h"
#include "models/events/traffic.h"
#include "models/ici/link_interface.h"

namespace tpusim::ici {

class Link : public sc_core::sc_module, public LinkInterface, public steady::Stateful {
 public:
  // Represents all links of its class.
  Link(sc_core::sc_module_name name, events::Fluid& fluid, const configs::Link& id,
       BytesPerSecond rate);

  const configs::Link& id() const { return id_; }
  flow::ResourceId resource() const override { return resource_; }

  void Sent(Bytes bytes) override { traffic_.sent += bytes; }
  void Received(Bytes bytes) override { traffic_.received += bytes; }
  void Visit(steady::StateVisitor& visitor) override { traffic_.Visit(visitor); }
  Bytes sent() const { return traffic_.sent; }
  Bytes received() const { return traffic_.received; }

 private:
  const configs::Link id_;
  const flow::ResourceId resource_;
  events::Traffic traffic_;
};

}  // namespace tpusim::ici

#endif  // TPUSIM_MODELS_ICI_LINK_H_

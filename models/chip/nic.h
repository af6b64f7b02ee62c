// The network card of a host: what its chips send to and receive from other slices
// over the data-centre network, all at once. A resource per direction, as fast as
// `host.dcn_bytes_per_second` of every chip of the slice on that host. The network
// between the cards is not a bottleneck.
#ifndef TPUSIM_MODELS_CHIP_NIC_H_
#define TPUSIM_MODELS_CHIP_NIC_H_

#include <systemc>

#include "configs/chip.h"
#include "configs/units.h"
#include "models/chip/interfaces.h"
#include "models/events/fluid.h"
#include "models/events/traffic.h"

namespace tpusim::chip {

class Nic : public sc_core::sc_module, public NicInterface, public steady::Stateful {
 public:
  // Builds the card of a host with so many chips, for `multiplicity` equal hosts.
  Nic(sc_core::sc_module_name name, events::Fluid& fluid, const configs::ChipParams& params,
      int64_t chips, int64_t multiplicity);

  flow::ResourceId outward() const override { return egress_; }
  flow::ResourceId inward() const override { return ingress_; }
  int64_t multiplicity() const override { return multiplicity_; }
  void Sent(Bytes bytes, int64_t senders) override { traffic_.sent += bytes * senders; }
  void Received(Bytes bytes, int64_t senders) override { traffic_.received += bytes * senders; }
  void Visit(steady::StateVisitor& visitor) override { traffic_.Visit(visitor); }
  // Returns the bytes that one card sent.
  Bytes sent() const { return traffic_.sent / multiplicity_; }
  Bytes received() const { return traffic_.received / multiplicity_; }
  // Returns the bytes of all equal cards together.
  const events::Traffic& traffic() const { return traffic_; }

 private:
  const flow::ResourceId egress_;
  const flow::ResourceId ingress_;
  const int64_t multiplicity_;
  events::Traffic traffic_;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_NIC_H_

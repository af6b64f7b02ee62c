// How a device reaches the network, seen from the device: models/ici implements
// it, so that the chip does not depend on the interconnect.
#ifndef TPUSIM_MODELS_CHIP_NETWORK_PORT_H_
#define TPUSIM_MODELS_CHIP_NETWORK_PORT_H_

#include <cstdint>

#include "models/events/probe.h"
#include "models/isa/program.h"

namespace tpusim::chip {

class NetworkPort {
 public:
  // Both return at once; flags tell the ends. `device` is the sender.
  virtual void Send(int32_t device, const isa::Rdma& rdma, const isa::RouteEnd& route,
                    const events::StreamRef& stream, int32_t op) = 0;
  virtual void Signal(int32_t device, const isa::Signal& signal, const isa::RouteEnd& route) = 0;

 protected:
  ~NetworkPort() = default;
};

}  // namespace tpusim::chip

#endif  // TPUSIM_MODELS_CHIP_NETWORK_PORT_H_

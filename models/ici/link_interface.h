// A link as the network uses it: the resource that transfers take, and counters of what
// went in and came out.
#ifndef TPUSIM_MODELS_ICI_LINK_INTERFACE_H_
#define TPUSIM_MODELS_ICI_LINK_INTERFACE_H_

#include <systemc>

#include "configs/units.h"
#include "models/flow/network.h"

namespace tpusim::ici {

class LinkInterface : public virtual sc_core::sc_interface {
 public:
  virtual flow::ResourceId resource() const = 0;
  virtual void Sent(Bytes bytes) = 0;
  virtual void Received(Bytes bytes) = 0;
};

}  // namespace tpusim::ici

#endif  // TPUSIM_MODELS_ICI_LINK_INTERFACE_H_

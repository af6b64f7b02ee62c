// The fabric: the links that a route crosses for a device, and the endpoints that it reaches.
//
// The room answers how a remote DMA gets from device to device (router.h). The pod fills the fabric
// while it is built. If one module represents several equal ones, all of them lead to it; a flow
// from one of A equal devices counts A / X times on one of X equal resources. A transfer is one
// flow over all links of its route, with the latency of the hops added at its end; packets were
// rejected: they take an event each and say the same about bandwidth (flow/network.h). `Fabric` is
// the entry point.
#ifndef TPUSIM_MODELS_ICI_FABRIC_H_
#define TPUSIM_MODELS_ICI_FABRIC_H_

#include <cstdint>
#include <systemc>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "models/chip/interfaces.h"
#include "models/ici/joint_arrivals.h"
#include "models/ici/link_interface.h"

namespace tpusim::ici {

// Hears the begin and the end of every transfer's flow.
class FlightListener {
 public:
  virtual void FlightBegins(int32_t device, int32_t route) = 0;
  virtual void FlightEnds(int32_t device, int32_t route) = 0;

 protected:
  ~FlightListener() = default;
};

// The ports of a device, and of all that it represents, to the network.
class Endpoint : public sc_core::sc_module, public steady::Stateful {
 public:
  Endpoint(sc_core::sc_module_name name, int64_t multiplicity);

  sc_core::sc_port<chip::MemoryInterface> hbm{"hbm"};
  sc_core::sc_port<chip::ServerInterface> vpu{"vpu"};
  sc_core::sc_port<chip::FlagsInterface> flags{"flags"};
  sc_core::sc_port<chip::DuplexInterface> host_link{"host_link"};
  // Unbound where a chip is one device, has no SparseCores, where there is one slice.
  template <typename Interface>
  using Optional = sc_core::sc_port<Interface, 1, sc_core::SC_ZERO_OR_MORE_BOUND>;
  Optional<chip::ServerInterface> die_link{"die_link"};
  Optional<chip::ServerInterface> sparse_core{"sparse_core"};
  Optional<chip::NicInterface> nic{"nic"};

  int64_t multiplicity() const { return multiplicity_; }
  // Resources of the fluid, known from elaboration on.
  flow::ResourceId hbm_resource() const { return hbm_resource_; }
  flow::ResourceId vpu_resource() const { return vpu_resource_; }
  JointArrivals& joint_arrivals() { return joint_arrivals_; }
  void Visit(steady::StateVisitor& visitor) override { joint_arrivals_.Visit(visitor); }

 private:
  void end_of_elaboration() override;

  const int64_t multiplicity_;
  JointArrivals joint_arrivals_;
  flow::ResourceId hbm_resource_, vpu_resource_;
};

// The effects of a transfer over a route.
struct Path {
  // A link carries the transfer so many times, once for every equal transfer that crosses it.
  struct LinkCrossing {
    int32_t link = 0;  // of Fabric::links
    int64_t flows = 1;
    // False: another link of this way is at least as full whenever a transfer is on this one, so
    // that it sets no rate.
    bool limits = true;
  };
  std::vector<LinkCrossing> crossings;
  // A device whose memory the transfer is written to, and how many of such transfers reach each
  // device that it represents: one, unless an approximation puts unlike receivers together.
  struct Receiver {
    int32_t device = 0;
    double share = 1;
  };
  absl::InlinedVector<Receiver, 1> receivers;
  // A device whose flags count what arrives. `names` maps a flag as the sender names it to the
  // receiver's name; null: the same.
  struct Arrival {
    int32_t device = 0;
    const std::vector<int32_t>* names = nullptr;
    int64_t count = 1;
    int32_t sender = 0, senders = 1;  // of JointArrivals
  };
  absl::InlinedVector<Arrival, 1> arrivals;
  // The device whose way over the route sets the latency.
  int32_t timed_by = -1;
};

class FabricInterface : public virtual sc_core::sc_interface {
 public:
  virtual const Path& PathOf(int32_t device, int32_t route) const = 0;
  // Returns the endpoint of the device or of the one that represents it.
  virtual Endpoint& EndpointOf(int32_t device) = 0;
  virtual LinkInterface& LinkAt(int32_t link) = 0;
  virtual FlightListener* flights() const = 0;  // null: no listener
};

// Filled while the pod is built, constant afterwards.
class Fabric : public sc_core::sc_module, public FabricInterface {
 public:
  explicit Fabric(sc_core::sc_module_name name);

  // Links that were built.
  sc_core::sc_port<LinkInterface, 0, sc_core::SC_ZERO_OR_MORE_BOUND> links{"links"};

  struct FoldedDevice {
    Endpoint* endpoint = nullptr;
    int32_t device_class = 0;
  };
  void AddDevice(const FoldedDevice& device) { devices_.push_back(device); }
  // Adds the paths of the next route, by class of the sender.
  void AddRoute(std::vector<Path> paths) { paths_.push_back(std::move(paths)); }
  void SetFlightListener(FlightListener* listener) { flights_ = listener; }

  const Path& PathOf(int32_t device, int32_t route) const override {
    return paths_[route][devices_[device].device_class];
  }
  Endpoint& EndpointOf(int32_t device) override { return *devices_[device].endpoint; }
  LinkInterface& LinkAt(int32_t link) override { return *links[link]; }
  FlightListener* flights() const override { return flights_; }

 private:
  std::vector<FoldedDevice> devices_;
  std::vector<std::vector<Path>> paths_;  // by route
  FlightListener* flights_ = nullptr;
};

}  // namespace tpusim::ici

#endif  // TPUSIM_MODELS_ICI_FABRIC_H_

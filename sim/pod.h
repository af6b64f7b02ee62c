// The pod: every chip of the slice as SystemC modules, loaded with a program.
//
//   pod
//     fluid                     all transfers
//     ready                     streams that run next
//     fabric                    which links and devices a route leads to
//     fast_forward              moves time over passes of loops that repeat
//     chip0
//       hbm cmem vmem mxu vpu xlu dma tensor_core flags fork_join stream_tensor_core_0 ...
//       host_link
//       router
//         link_x_plus ...
//     chip1 ...
//     host0_nic ...             where there are several slices
//     endpoint0 ...             what the fabric reaches of a device
//
// Only representatives are built: of every class of devices, links, host links and
// network cards that do the same (symmetry/classes.h) one member, which represents the others.
//
// A pod runs once: build it, call sc_start, look at the result.
#ifndef TPUSIM_SIM_POD_H_
#define TPUSIM_SIM_POD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <systemc>
#include <vector>

#include "configs/config.h"
#include "configs/hosts.h"
#include "models/chip/device.h"
#include "models/chip/host_link.h"
#include "models/chip/nic.h"
#include "models/events/faults.h"
#include "models/events/fluid.h"
#include "models/events/run_queue.h"
#include "models/ici/fabric.h"
#include "models/ici/router.h"
#include "models/isa/program.h"
#include "sim/fast_forward.h"
#include "sim/impairments/impairments.h"
#include "sim/recorder.h"
#include "sim/symmetry/classes.h"
#include "sim/symmetry/in_flight.h"

namespace tpusim::sim {

struct PodContext {
  const configs::Config& config;
  const isa::PodProgram& program;
  const Impairments& impairments;
  const Classes& classes;
  bool every_step = false;
  const std::vector<isa::StreamId>& stream_ids;
  events::Fluid& fluid;
  events::RunQueue& ready;
  ici::Fabric& fabric;
  const std::vector<chip::HostLink*>& host_links;  // per chip, representatives only
  chip::LoopListener* loops = nullptr;             // null: every pass is executed
  events::Causes* causes = nullptr;                // null: they are not kept
  events::Faults& faults;
  Recorder& recorder;
};

// One package on the torus with those of its parts that represent a class.
class Chip : public sc_core::sc_module {
 public:
  Chip(sc_core::sc_module_name name, int64_t id, const PodContext& context);

  ici::Router& router() { return router_; }
  chip::HostLink* host_link() { return host_link_.get(); }
  const std::vector<std::unique_ptr<chip::Device>>& devices() const { return devices_; }

 private:
  const configs::ChipParams params_;  // of this chip: it may be impaired
  std::unique_ptr<chip::HostLink> host_link_;
  ici::Router router_;
  std::vector<std::unique_ptr<chip::Device>> devices_;
};

class Pod : public sc_core::sc_module {
 public:
  // The program must have been verified (isa/verify.h); everything must outlive the pod. `flights`
  // is told when a transfer begins and ends; null: no listener.
  Pod(sc_core::sc_module_name name, const configs::Config& config, const isa::PodProgram& program,
      const Impairments& impairments, const Classes& classes, bool every_step, InFlight* flights,
      Recorder& recorder, events::Causes* causes = nullptr);
  // SystemC finds a module, port or process that goes fast if it was the last that came, and
  // searches all of them otherwise: modules go in the opposite order.
  ~Pod() override;

  // The device itself, or the one that represents it.
  chip::Device& device(int32_t id) { return *devices_[id]; }
  const Classes& classes() const { return classes_; }
  int64_t devices() const { return static_cast<int64_t>(devices_.size()); }
  const absl::Status& fault() const { return faults_.status(); }
  // The simulation ends with RESOURCE_EXHAUSTED after so many instructions, or so many starts and
  // ends of flows.
  void LimitInstructions(int64_t instructions) { faults_.LimitEvents(instructions); }
  void LimitFlows(int64_t flows) { fluid_.LimitEvents(flows, faults_); }
  // Lets states recur that are only nearly the same, after so many events (fast_forward.h).
  void TolerateAfter(int64_t events) { fast_forward_.TolerateAfter(events); }
  Picoseconds tolerated() const { return fast_forward_.tolerated(); }
  // Passes of a loop that would have made the step longer than kLongestStep.
  const std::optional<PassesAhead>& passes_ahead() const { return fast_forward_.ahead(); }
  const flow::Network& network() const { return fluid_.network(); }
  // Instructions retired, flows started and ended.
  int64_t events() const { return instructions() + flows(); }
  int64_t instructions() const;
  int64_t flows() const { return fluid_.events(); }
  // Adds, after the run, the bytes that only the machine knows.
  void AddBytes(Timeline& timeline);
  // Aborts, after the run, if the counters of the fluid or of a link do not balance or something
  // was used beyond its capacity.
  void CheckInvariants(const Timeline& timeline);

 private:
  void BuildNics(const configs::Hosts& hosts);
  void BuildEndpoints(const configs::Hosts& hosts);
  void WatchRates(Recorder& recorder);

  // `shows_links`: the rates of links are recorded, also of those that limit nothing.
  void AddPaths(const isa::PodProgram& program, bool shows_links);

  // The member of `classes` that represents the link; null = no such link.
  ici::Link* LinkOf(int64_t chip, int direction) {
    return links_[chip * configs::kDirections + direction];
  }

  const configs::Config& config_;
  const Classes& classes_;
  events::Faults faults_;
  ici::Fabric fabric_;
  events::Fluid fluid_;
  events::RunQueue ready_;
  std::vector<isa::StreamId> stream_ids_;
  std::vector<std::unique_ptr<Chip>> chips_;
  std::vector<chip::HostLink*> host_links_;
  std::vector<std::unique_ptr<chip::Nic>> nics_;           // per host, representatives only
  std::vector<std::unique_ptr<ici::Endpoint>> endpoints_;  // per device, representatives only
  std::vector<chip::Device*> devices_;
  std::vector<ici::Link*> links_;  // by LinkIndex
  FastForward fast_forward_;
};

}  // namespace tpusim::sim

#endif  // TPUSIM_SIM_POD_H_

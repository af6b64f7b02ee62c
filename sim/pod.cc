#include "sim/pod.h"

#include <fmt/format.h>

#include <cmath>

#include "configs/status_macros.h"
#include "models/isa/verify.h"

namespace tpusim::sim {

Chip::Chip(sc_core::sc_module_name name, int64_t id, const PodContext& context)
    : sc_module(name),
      host_link_("host_link", context.fluid, context.config.chip),
      nic_("nic", context.fluid, context.config.chip),
      router_("router", context.fluid, context.config, id, context.fabric, context.recorder) {
  const int64_t per_chip = context.config.topology.devices_per_chip();
  for (int64_t index = 0; index < per_chip; ++index) {
    const auto device = static_cast<int32_t>(id * per_chip + index);
    devices_.push_back(std::make_unique<chip::Device>(chip::DeviceContext{
        .device = device,
        .index_on_chip = static_cast<int32_t>(index),
        .params = context.config.chip,
        .program = context.program,
        .stream_ids = context.stream_ids,
        .fluid = context.fluid,
        .host_link = host_link_,
        .network = router_,
        .faults = context.faults,
        .probe = context.recorder.device(device),
    }));
  }
}

Pod::Pod(sc_core::sc_module_name name, const configs::Config& config,
         const isa::PodProgram& program, Recorder& recorder)
    : sc_module(name), config_(config), fluid_("fluid"), stream_ids_(isa::StreamsOf(program)) {
  const PodContext context{
      .config = config,
      .program = program,
      .stream_ids = stream_ids_,
      .fluid = fluid_,
      .fabric = fabric_,
      .faults = faults_,
      .recorder = recorder,
  };
  for (int64_t id = 0; id < config.topology.chips(); ++id) {
    chips_.push_back(std::make_unique<Chip>(fmt::format("chip{}", id).c_str(), id, context));
    fabric_.routers.push_back(&chips_.back()->router());
    for (const auto& device : chips_.back()->devices()) {
      devices_.push_back(device.get());
      fabric_.devices.push_back({&device->hbm(), &device->vpu(), &device->flags()});
    }
  }
  for (int64_t d = 0; d < devices(); ++d) {
    const isa::SharedBody& body = program.programs[program.program_of_device[d]];
    devices_[d]->main_stream().Enqueue(*body, /*token=*/-1);
  }
  if (!recorder.recorded_devices().empty()) WatchRates(recorder);
}

void Pod::WatchRates(Recorder& recorder) {
  int64_t last_chip = -1;
  for (const int32_t id : recorder.recorded_devices()) {
    recorder.WatchRate(device(id).hbm().resource(), id, Counter::kHbmBandwidth, 0);
    const int64_t chip = id / config_.topology.devices_per_chip();
    if (chip == last_chip) continue;  // its links are shown on its first device
    last_chip = chip;
    for (int d = 0; d < configs::kDirections; ++d) {
      const ici::Link* link = chips_[chip]->router().link(static_cast<configs::Direction>(d));
      if (link != nullptr) recorder.WatchRate(link->resource(), id, Counter::kLinkBandwidth, d);
    }
  }
  recorder.ObserveRates(fluid_.network());
}

int64_t Pod::events() const {
  int64_t events = fluid_.events();
  for (const chip::Device* device : devices_) {
    for (const chip::Stream* stream : device->streams()) events += stream->retired();
  }
  return events;
}

void Pod::AddBytes(Timeline& timeline) {
  for (chip::Device* device : devices_) {
    timeline.devices[device->id()].hbm_bytes =
        Bytes(std::llround(fluid_.network().Carried(device->hbm().resource())));
  }
  const configs::Topology& topology = config_.topology;
  // Links belong to a chip; they are listed with its first device.
  for (int64_t chip = 0; chip < topology.chips(); ++chip) {
    for (int d = 0; d < configs::kDirections; ++d) {
      const auto direction = static_cast<configs::Direction>(d);
      const ici::Link* link = chips_[chip]->router().link(direction);
      if (link == nullptr) continue;
      const int64_t to = topology.Neighbour(chip, direction);
      timeline.devices[chip * topology.devices_per_chip()].sent[d] += link->sent();
      timeline.devices[to * topology.devices_per_chip()].received[d] += link->received();
    }
  }
}

void Pod::CheckInvariants(const Timeline& timeline) {
  const std::string books = fluid_.network().CheckConservation();
  TPUSIM_CHECK(books.empty(), books);
  TPUSIM_CHECK(fluid_.network().active_flows() == 0, "flows are left over after the last event");
  for (const auto& chip : chips_) {
    for (int d = 0; d < configs::kDirections; ++d) {
      const ici::Link* link = chip->router().link(static_cast<configs::Direction>(d));
      if (link == nullptr) continue;
      TPUSIM_CHECK(link->sent() == link->received(),
                   fmt::format("{}: {} bytes sent, {} received", link->name(), link->sent().value(),
                               link->received().value()));
    }
  }
  for (const DeviceTotals& totals : timeline.devices) {
    TPUSIM_CHECK(totals.mxu_busy <= totals.finish && totals.vpu_busy <= totals.finish &&
                     totals.compute_busy + totals.exposed <= totals.finish,
                 "a device was busy for longer than its program took");
  }
}

}  // namespace tpusim::sim

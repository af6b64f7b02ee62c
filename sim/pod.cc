#include "sim/pod.h"

#include <fmt/format.h>

#include <cmath>

#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/isa/verify.h"
#include "models/timing/collective_timing.h"
#include "sim/symmetry/limiting_links.h"

namespace tpusim::sim {

namespace {

configs::ChipParams Impaired(const configs::ChipParams& params, double clock_factor) {
  configs::ChipParams impaired = params;
  impaired.clock = params.clock * clock_factor;
  return impaired;
}

ici::LinkRates LinksOf(int64_t chip, const PodContext& context) {
  ici::LinkRates rates;
  for (int d = 0; d < configs::kDirections; ++d) {
    const configs::Link link{chip, static_cast<configs::Direction>(d)};
    if (!context.classes.links.IsRepresentative(LinkIndex(link))) continue;
    rates[d] = LinkRate(context.config, context.impairments, link);
  }
  return rates;
}

bool HasRepresentative(int64_t chip, const configs::Config& config, const Classes& classes) {
  if (classes.chips.IsRepresentative(chip)) return true;
  const int64_t per_chip = config.topology.devices_per_chip();
  for (int64_t d = chip * per_chip; d < (chip + 1) * per_chip; ++d) {
    if (classes.devices.IsRepresentative(d)) return true;
  }
  for (int64_t l = chip * configs::kDirections; l < (chip + 1) * configs::kDirections; ++l) {
    if (classes.links.IsRepresentative(l)) return true;
  }
  return false;
}

template <typename T>
void DestroyBackwards(std::vector<std::unique_ptr<T>>& modules) {
  while (!modules.empty()) modules.pop_back();
}

}  // namespace

Chip::Chip(sc_core::sc_module_name name, int64_t id, const PodContext& context)
    : sc_module(name),
      params_(Impaired(context.config.chip, context.impairments.ClockFactor(id))),
      router_("router", context.fluid, params_, id, LinksOf(id, context), context.program,
              context.recorder, context.causes) {
  router_.fabric(context.fabric);
  const Classes& classes = context.classes;
  if (classes.chips.IsRepresentative(id)) {
    host_link_ = std::make_unique<chip::HostLink>("host_link", context.fluid, params_,
                                                  classes.chips.Multiplicity(id));
  }
  const int64_t per_chip = context.config.topology.devices_per_chip();
  for (int64_t index = 0; index < per_chip; ++index) {
    const auto device = static_cast<int32_t>(id * per_chip + index);
    if (!classes.devices.IsRepresentative(device)) continue;
    // Representatives are the first of their class, so the one of this chip's host
    // link is this chip's own or was built before.
    chip::HostLink* host_link =
        host_link_ ? host_link_.get() : context.host_links[classes.chips.Representative(id)];
    devices_.push_back(std::make_unique<chip::Device>(chip::DeviceContext{
        .device = device,
        .index_on_chip = static_cast<int32_t>(index),
        .multiplicity = classes.devices.Multiplicity(device),
        .every_step = context.every_step,
        .params = params_,
        .program = context.program,
        .stream_ids = context.stream_ids,
        .fluid = context.fluid,
        .host_link = *host_link,
        .network = router_,
        .loops = context.loops,
        .faults = context.faults,
        .probe = context.recorder.device(device),
        .ready = context.ready,
        .causes = context.causes,
    }));
  }
}

Pod::Pod(sc_core::sc_module_name name, const configs::Config& config,
         const isa::PodProgram& program, const Impairments& impairments, const Classes& classes,
         bool every_step, InFlight* flights, Recorder& recorder, events::Causes* causes)
    : sc_module(name),
      config_(config),
      classes_(classes),
      fabric_("fabric"),
      fluid_("fluid"),
      ready_("ready"),
      stream_ids_(isa::StreamsOf(program)),
      // A trace and a view of the program follow the names of operations and flags.
      fast_forward_("fast_forward", *this, recorder, faults_,
                    !recorder.recorded_devices().empty() || classes.views.size() > 1, causes) {
  const PodContext context{
      .config = config,
      .program = program,
      .impairments = impairments,
      .classes = classes,
      .every_step = every_step,
      .stream_ids = stream_ids_,
      .fluid = fluid_,
      .ready = ready_,
      .fabric = fabric_,
      .host_links = host_links_,
      .loops = every_step ? nullptr : &fast_forward_,
      .causes = causes,
      .faults = faults_,
      .recorder = recorder,
  };
  const int64_t chips = config.topology.chips();
  devices_.resize(static_cast<size_t>(config.devices()));
  host_links_.resize(static_cast<size_t>(chips));
  links_.resize(static_cast<size_t>(chips * configs::kDirections));
  for (int64_t id = 0; id < chips; ++id) {
    if (!HasRepresentative(id, config, classes)) continue;
    Chip& chip = *chips_.emplace_back(
        std::make_unique<Chip>(fmt::format("chip{}", id).c_str(), id, context));
    host_links_[id] = chip.host_link();
    for (const auto& device : chip.devices()) {
      devices_[device->id()] = device.get();
    }
    for (int d = 0; d < configs::kDirections; ++d) {
      links_[id * configs::kDirections + d] =
          chip.router().link(static_cast<configs::Direction>(d));
    }
  }
  const configs::Hosts hosts = configs::HostsOf(config);
  BuildNics(hosts);
  // The others lead to their representatives.
  for (int64_t d = 0; d < config.devices(); ++d) {
    devices_[d] = devices_[classes.devices.Representative(d)];
  }
  BuildEndpoints(hosts);
  for (size_t l = 0; l < links_.size(); ++l) {
    if (classes.links.class_of[l] < 0) continue;
    links_[l] = links_[classes.links.Representative(static_cast<int64_t>(l))];
  }
  AddPaths(program, !recorder.recorded_devices().empty());
  fabric_.SetFlightListener(flights);
  fluid_.SetSettleListener(flights);
  for (const int32_t d : classes.devices.first) {
    const isa::SharedBody& body = program.programs[program.program_of_device[d]];
    devices_[d]->main_stream().Enqueue(*body, /*token=*/-1, {});
  }
  if (!recorder.recorded_devices().empty()) WatchRates(recorder);
}

Pod::~Pod() {
  DestroyBackwards(endpoints_);
  DestroyBackwards(nics_);
  DestroyBackwards(chips_);
}

void Pod::AddPaths(const isa::PodProgram& program, bool shows_links) {
  // Links are numbered as their classes.
  std::vector<double> rates;
  for (const int64_t first : classes_.links.first) {
    fabric_.links(*links_[first]);
    rates.push_back(fluid_.network().Capacity(links_[first]->resource()));
  }
  // What is shown of links is what goes over each of them.
  const std::vector<bool> limiting = shows_links ? std::vector<bool>(rates.size(), true)
                                                 : LimitingLinks(classes_.loads, rates);
  for (size_t route = 0; route < program.routes.size(); ++route) {
    std::vector<ici::Path> paths;
    for (const RouteLoad& load : classes_.loads[route]) {
      ici::Path& path = paths.emplace_back();
      path.timed_by = load.timed_by;
      for (const RouteLoad::OnLinks& on : load.links) {
        path.crossings.push_back({on.link_class, on.flows, limiting[on.link_class]});
      }
      for (const RouteLoad::Receiver& to : load.receivers) {
        path.receivers.push_back({to.receiver, to.share});
      }
      for (const RouteLoad::Arrival& arrival : load.arrivals) {
        path.arrivals.push_back({arrival.receiver,
                                 arrival.view == 0 ? nullptr : &classes_.views[arrival.view].flags,
                                 arrival.count, arrival.sender, arrival.senders});
      }
    }
    fabric_.AddRoute(std::move(paths));
  }
}

void Pod::BuildEndpoints(const configs::Hosts& hosts) {
  endpoints_.resize(devices_.size());
  for (int64_t d = 0; d < config_.devices(); ++d) {
    const int64_t representative = classes_.devices.Representative(d);
    const int64_t chip = d / config_.topology.devices_per_chip();
    TPUSIM_CHECK(classes_.chips.class_of[chip] ==
                     classes_.chips.class_of[representative / config_.topology.devices_per_chip()],
                 "devices of a class are on chips of several classes");
    std::unique_ptr<ici::Endpoint>& endpoint = endpoints_[representative];
    if (endpoint == nullptr) {
      chip::Device& device = *devices_[d];
      endpoint = std::make_unique<ici::Endpoint>(
          fmt::format("endpoint{}", d).c_str(), classes_.devices.Multiplicity(d));
      endpoint->hbm(device.memory(isa::MemorySpace::kHbm));
      endpoint->vpu(device.vpu().adds());
      endpoint->flags(device.flags());
      endpoint->host_link(*host_links_[classes_.chips.Representative(chip)]);
      if (device.die_link() != nullptr) endpoint->die_link(*device.die_link());
      if (device.sparse_core() != nullptr) endpoint->sparse_core(*device.sparse_core());
      if (!nics_.empty()) {
        endpoint->nic(*nics_[classes_.hosts.Representative(hosts.of_chip[chip])]);
      }
    }
    fabric_.AddDevice({endpoint.get(), classes_.devices.class_of[d]});
  }
}

void Pod::BuildNics(const configs::Hosts& hosts) {
  nics_.resize(hosts.chips.size());
  for (const int32_t host : classes_.hosts.first) {
    nics_[host] =
        std::make_unique<chip::Nic>(fmt::format("host{}_nic", host).c_str(), fluid_, config_.chip,
                                    hosts.chips[host], classes_.hosts.Multiplicity(host));
  }
}

void Pod::WatchRates(Recorder& recorder) {
  int64_t last_chip = -1;
  for (const int32_t id : recorder.recorded_devices()) {
    for (const isa::MemorySpace space : configs::kRatedSpaces) {
      const auto resource = device(id).memory(space).resource();
      const auto memory = static_cast<int32_t>(configs::IndexOf(space));
      if (resource) recorder.WatchRate(*resource, id, Counter::kBandwidth, memory);
    }
    const int64_t chip = id / config_.topology.devices_per_chip();
    if (chip == last_chip) continue;  // its links are shown on its first device
    last_chip = chip;
    for (int d = 0; d < configs::kDirections; ++d) {
      const ici::Link* link = LinkOf(chip, d);
      if (link != nullptr) recorder.WatchRate(link->resource(), id, Counter::kLinkBandwidth, d);
    }
  }
  recorder.ObserveRates(fluid_.network());
}

int64_t Pod::instructions() const {
  int64_t retired = 0;
  for (const int32_t d : classes_.devices.first) {
    for (const auto& stream : devices_[d]->streams()) retired += stream->retired();
  }
  return retired;
}

void Pod::AddBytes(Timeline& timeline) {
  const auto carried = [&](chip::Device& device, isa::MemorySpace space) {
    const auto resource = device.memory(space).resource();
    return resource ? Bytes(std::llround(fluid_.network().Carried(*resource))) : Bytes(0);
  };
  // Representatives come before those for which they stand.
  for (int32_t d = 0; d < static_cast<int32_t>(devices_.size()); ++d) {
    DeviceTotals& totals = timeline.devices[d];
    const int32_t first = classes_.devices.Representative(d);
    if (first != d) {
      totals.moved = timeline.devices[first].moved;
      continue;
    }
    for (const isa::MemorySpace space : configs::kRatedSpaces) {
      totals.moved.In(space) = carried(*devices_[d], space);
    }
  }
  for (size_t host = 0; host < nics_.size(); ++host) {
    const chip::Nic& nic = *nics_[classes_.hosts.Representative(static_cast<int64_t>(host))];
    timeline.hosts.push_back({nic.sent(), nic.received()});
  }
  const configs::Topology& topology = config_.topology;
  // Links belong to a chip; they are listed with its first device.
  for (int64_t chip = 0; chip < topology.chips(); ++chip) {
    for (int d = 0; d < configs::kDirections; ++d) {
      const ici::Link* link = LinkOf(chip, d);
      if (link == nullptr) continue;
      const int64_t to = topology.Neighbour(chip, static_cast<configs::Direction>(d));
      timeline.devices[chip * topology.devices_per_chip()].sent[d] += link->sent();
      timeline.devices[to * topology.devices_per_chip()].received[d] += link->received();
    }
  }
}

void Pod::CheckInvariants(const Timeline& timeline) {
  const std::string wrong = fluid_.network().CheckConservation();
  TPUSIM_CHECK(wrong.empty(), wrong);
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
  Bytes sent(0), received(0);
  for (const auto& nic : nics_) {
    if (nic == nullptr) continue;
    sent += nic->traffic().sent;
    received += nic->traffic().received;
  }
  TPUSIM_CHECK(sent == received, "the slices did not receive what they sent to each other");
  for (const DeviceTotals& totals : timeline.devices) {
    TPUSIM_CHECK(totals.mxu_busy <= totals.finish && totals.vpu_busy <= totals.finish &&
                     totals.compute_busy + totals.exposed <= totals.finish,
                 "a device was busy for longer than its program took");
  }
}

}  // namespace tpusim::sim

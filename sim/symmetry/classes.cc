#include "sim/symmetry/classes.h"

#include <array>
#include <bit>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "configs/hosts.h"
#include "models/isa/used_routes.h"

namespace tpusim::sim {
namespace {

using Colour = uint64_t;
constexpr Colour kNone = 0;  // of what does not exist

// A finalizer with full avalanche (SplitMix64's).
Colour Mix(Colour x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}
// `b` mixed already.
Colour Add(Colour a, Colour b) { return Mix(a ^ b); }
Colour Mix(Colour a, Colour b) { return Add(a, Mix(b)); }

Partition PartitionOf(const std::vector<Colour>& colours) {
  Partition partition;
  partition.class_of.assign(colours.size(), -1);
  std::unordered_map<Colour, int32_t> known;
  // Most are of few colours, which need not be looked up.
  std::array<std::pair<Colour, int32_t>, 64> recent = {};
  for (size_t i = 0; i < colours.size(); ++i) {
    if (colours[i] == kNone) continue;
    auto& [colour, its_class] = recent[colours[i] % recent.size()];
    if (colour != colours[i]) {
      const auto [it, fresh] =
          known.try_emplace(colours[i], static_cast<int32_t>(partition.first.size()));
      if (fresh) {
        partition.first.push_back(static_cast<int32_t>(i));
        partition.size.push_back(0);
      }
      colour = colours[i];
      its_class = it->second;
    }
    partition.class_of[i] = its_class;
    ++partition.size[its_class];
  }
  return partition;
}

// What a transfer to another slice is to a network card or host link.
constexpr Colour kLeaves = 1, kArrives = 2;

class Refinement {
 public:
  Refinement(const configs::Config& config, const isa::PodProgram& program,
             const Impairments& impairments)
      : program_(program),
        per_chip_(config.topology.devices_per_chip()),
        used_(isa::UsedRoutes(program)),
        devices_(static_cast<size_t>(program.devices())),
        links_(static_cast<size_t>(config.topology.chips() * configs::kDirections), kNone),
        chips_(static_cast<size_t>(config.topology.chips()), Mix(1)),
        on_hosts_(configs::HostsOf(config)) {
    for (const int64_t chips : on_hosts_.chips) {
      hosts_.push_back(Mix(4, static_cast<Colour>(chips)));
    }
    for (size_t d = 0; d < devices_.size(); ++d) {
      const double clock = impairments.ClockFactor(static_cast<int64_t>(d) / per_chip_);
      devices_[d] = Mix(Mix(2, static_cast<Colour>(program.program_of_device[d])),
                        std::bit_cast<Colour>(clock));
    }
    for (const configs::Link& link : config.topology.AllLinks()) {
      links_[LinkIndex(link)] = Mix(Mix(3, static_cast<Colour>(link.direction)),
                                    std::bit_cast<Colour>(impairments.LinkFactor(link)));
    }
  }

  Classes Run() {
    Classes classes = Current();
    for (;;) {
      Refine();
      Classes finer = Current();
      // A new colour contains the old one, so classes only ever split.
      if (Count(finer) == Count(classes)) return finer;
      classes = std::move(finer);
    }
  }

 private:
  static int64_t Count(const Classes& c) {
    return c.devices.classes() + c.links.classes() + c.chips.classes() + c.hosts.classes();
  }
  Classes Current() const {
    return {PartitionOf(devices_), PartitionOf(links_), PartitionOf(chips_), PartitionOf(hosts_)};
  }

  // Everybody's next colour: their own, and the multiset of what they see. Sums
  // stand for multisets.
  void Refine() {
    std::vector<Colour> devices(devices_.size()), seen(devices_.size(), 0);
    std::vector<Colour> links(links_.size(), 0), chips(chips_.size(), 0);
    std::vector<Colour> hosts(hosts_.size(), 0);
    std::vector<Colour> routes(program_.routes.size());
    for (size_t r = 0; r < routes.size(); ++r) routes[r] = Mix(static_cast<Colour>(r));
    const Colour first_hop = Mix(0);
    for (size_t d = 0; d < devices_.size(); ++d) {
      const size_t chip = d / static_cast<size_t>(per_chip_);
      Colour colour = Mix(devices_[d], chips_[chip]);
      for (const int32_t route : used_[program_.program_of_device[d]]) {
        const isa::RouteEnd& end = program_.routes[route].from[d];
        if (end.peer < 0) continue;
        const Colour sends = Add(devices_[d], routes[route]);
        colour = Add(Add(colour, routes[route]), devices_[end.peer]);
        for (size_t hop = 0; hop < end.links.size(); ++hop) {
          const int64_t link = LinkIndex(end.links[hop]);
          colour = Add(colour, links_[link]);
          links[link] += Add(sends, hop == 0 ? first_hop : Mix(hop));
        }
        if (end.dcn) {
          const size_t peer_chip = static_cast<size_t>(end.peer / per_chip_);
          const int64_t here = on_hosts_.of_chip[chip], there = on_hosts_.of_chip[peer_chip];
          colour = Mix(Mix(Mix(colour, hosts_[here]), hosts_[there]), chips_[peer_chip]);
          hosts[here] += Mix(sends, kLeaves);
          hosts[there] += Mix(sends, kArrives);
          chips[peer_chip] += Mix(sends, kArrives);
        }
        seen[end.peer] += sends;
      }
      devices[d] = colour;
      chips[chip] += Mix(devices_[d]);
    }
    for (size_t d = 0; d < devices_.size(); ++d) devices_[d] = Mix(devices[d], seen[d]);
    for (size_t c = 0; c < chips_.size(); ++c) chips_[c] = Mix(chips_[c], chips[c]);
    for (size_t h = 0; h < hosts_.size(); ++h) hosts_[h] = Mix(hosts_[h], hosts[h]);
    for (size_t l = 0; l < links_.size(); ++l) {
      if (links_[l] != kNone) links_[l] = Mix(links_[l], links[l]);
    }
  }

  const isa::PodProgram& program_;
  const int64_t per_chip_;
  const std::vector<std::vector<int32_t>> used_;
  std::vector<Colour> devices_, links_, chips_;
  const configs::Hosts on_hosts_;
  std::vector<Colour> hosts_;
};

Partition Alone(int64_t n) {
  Partition partition;
  partition.class_of.resize(static_cast<size_t>(n));
  std::iota(partition.class_of.begin(), partition.class_of.end(), 0);
  partition.first = partition.class_of;
  partition.size.assign(static_cast<size_t>(n), 1);
  return partition;
}

}  // namespace

Classes Unfolded(const configs::Config& config) {
  std::vector<Colour> links(static_cast<size_t>(config.topology.chips() * configs::kDirections),
                            kNone);
  for (const configs::Link& link : config.topology.AllLinks()) {
    links[LinkIndex(link)] = static_cast<Colour>(LinkIndex(link)) + 1;
  }
  const auto hosts = static_cast<int64_t>(configs::HostsOf(config).chips.size());
  return {Alone(config.devices()), PartitionOf(links), Alone(config.topology.chips()),
          Alone(hosts)};
}

Classes FindClasses(const configs::Config& config, const isa::PodProgram& program,
                    const Impairments& impairments) {
  return Refinement(config, program, impairments).Run();
}

}  // namespace tpusim::sim

#include "sim/symmetry/automorphisms.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "configs/status_macros.h"
#include "models/isa/used_routes.h"
#include "sim/symmetry/hash.h"
#include "sim/symmetry/turns.h"

namespace tpusim::sim {
namespace {

// More programs than this are not compared with each other.
constexpr size_t kMaxPrograms = 1024;
// An automorphism is searched for by the chip to which it maps the first one; at most so many
// such chips are tried. Color refinement (Weisfeiler-Leman) labels chips, and those that an
// automorphism maps to each other have equal labels. Where many chips have one label, they are
// translations of each other; translations keep the names of routes, so color refinement alone
// finds these classes of chips.
constexpr size_t kMaxImages = 8;

struct Automorphism {
  std::vector<int64_t> chips;
  Relabeling relabeling;
};

class OrbitSearch {
 public:
  OrbitSearch(const configs::Config& config, const isa::PodProgram& program,
         const Impairments& impairments)
      : config_(config),
        program_(program),
        per_chip_(config.topology.devices_per_chip()),
        used_(isa::UsedRoutes(program)),
        is_used_(program.routes.size(), false) {
    for (const std::vector<int32_t>& routes : used_) {
      for (const int32_t route : routes) is_used_[route] = true;
    }
    rates_.assign(static_cast<size_t>(config.topology.chips() * configs::kDirections), kNoColor);
    for (const configs::Link& link : config.topology.AllLinks()) {
      rates_[LinkIndex(link)] =
          Hash(std::bit_cast<Color>(LinkRate(config, impairments, link).value()));
    }
    ColorChips(impairments);
    std::vector<int64_t> unmoved(static_cast<size_t>(config.topology.chips()));
    std::iota(unmoved.begin(), unmoved.end(), 0);
    routes_ = RoutesUnder(
        {std::move(unmoved),
         {configs::Direction::kXPlus, configs::Direction::kXMinus, configs::Direction::kYPlus,
          configs::Direction::kYMinus, configs::Direction::kZPlus, configs::Direction::kZMinus}});
  }

  // Automorphisms that together have all orbits of those that were found.
  std::vector<Automorphism> Run() {
    std::vector<Automorphism> found;
    std::vector<int64_t> orbit(chips_.size());  // a forest: towards smaller chips
    std::iota(orbit.begin(), orbit.end(), 0);
    const auto root = [&](int64_t chip) {
      while (orbit[chip] != chip) chip = orbit[chip] = orbit[orbit[chip]];
      return chip;
    };
    const std::vector<int64_t> rare = RarestChips();
    for (const int64_t image : rare) {
      for (Turn& turn : TurnsOf(config_.topology, rare.front(), image)) {
        // Whether it would bring chips together.
        bool joins = false;
        for (size_t c = 0; c < chips_.size() && !joins; ++c) {
          joins = root(static_cast<int64_t>(c)) != root(turn.chips[c]);
        }
        if (!joins) continue;
        std::optional<Relabeling> relabeling = RelabelingUnder(turn);
        if (!relabeling) continue;
        for (size_t c = 0; c < chips_.size(); ++c) {
          const int64_t a = root(static_cast<int64_t>(c)), b = root(turn.chips[c]);
          orbit[std::max(a, b)] = std::min(a, b);
        }
        found.push_back({std::move(turn.chips), *std::move(relabeling)});
      }
    }
    return found;
  }

 private:
  int32_t ProgramOf(int64_t chip, int64_t index) const {
    return program_.program_of_device[chip * per_chip_ + index];
  }

  // Colors chips by what a turn must preserve, but for the names of programs: clocks, and the rates
  // of the links around a chip in any order.
  void ColorChips(const Impairments& impairments) {
    std::vector<int64_t> devices(program_.programs.size(), 0);
    for (const int32_t program : program_.program_of_device) ++devices[program];
    std::vector<Color> links(static_cast<size_t>(config_.topology.chips()), 0);
    for (const configs::Link& link : config_.topology.AllLinks()) {
      links[link.chip] += Hash(1, rates_[LinkIndex(link)]);
      links[config_.topology.Neighbour(link.chip, link.direction)] +=
          Hash(2, rates_[LinkIndex(link)]);
    }
    for (int64_t chip = 0; chip < config_.topology.chips(); ++chip) {
      Color color = Hash(std::bit_cast<Color>(impairments.ClockFactor(chip)), links[chip]);
      for (int64_t i = 0; i < per_chip_; ++i) {
        color = Hash(color, static_cast<Color>(devices[ProgramOf(chip, i)]));
      }
      chips_.push_back(color);
    }
  }

  // The chips whose label in color refinement is the least frequent. An automorphism of the slice
  // maps each of them to one of them.
  std::vector<int64_t> RarestChips() const {
    const Partition alike = PartitionOf(chips_);
    const auto rarest = std::min_element(alike.size.begin(), alike.size.end());
    const auto its_class = static_cast<int32_t>(rarest - alike.size.begin());
    std::vector<int64_t> chips;
    for (size_t c = 0; c < chips_.size(); ++c) {
      if (alike.class_of[c] == its_class) chips.push_back(static_cast<int64_t>(c));
    }
    if (chips.size() > kMaxImages) return {chips.front()};
    return chips;
  }

  int32_t DeviceUnder(const Turn& turn, int64_t device) const {
    return static_cast<int32_t>(turn.chips[device / per_chip_] * per_chip_ + device % per_chip_);
  }

  // Hashes of where the used routes lead once the slice is turned.
  std::vector<Color> RoutesUnder(const Turn& turn) const {
    std::vector<Color> colors(program_.routes.size(), kNoColor);
    for (size_t r = 0; r < colors.size(); ++r) {
      if (!is_used_[r]) continue;
      const std::vector<isa::RouteEnd>& from = program_.routes[r].from;
      for (size_t d = 0; d < from.size(); ++d) {
        const isa::RouteEnd& end = from[d];
        if (end.peer < 0) continue;
        Color color = Hash(static_cast<Color>(DeviceUnder(turn, static_cast<int64_t>(d))),
                           static_cast<Color>(DeviceUnder(turn, end.peer)));
        Color links = 0;  // their order is no part of it
        for (const configs::Link& link : end.links) {
          links += Hash(static_cast<Color>(LinkIndex(turn.Of(link))));
        }
        colors[r] += Add(color, links);
      }
    }
    return colors;
  }

  std::optional<Relabeling> RelabelingUnder(const Turn& turn) const {
    std::vector<std::pair<int32_t, int32_t>> programs;
    std::vector<int32_t> image_of(program_.programs.size(), -1);
    for (size_t c = 0; c < chips_.size(); ++c) {
      const auto chip = static_cast<int64_t>(c);
      if (chips_[c] != chips_[turn.chips[c]]) return std::nullopt;
      for (int64_t i = 0; i < per_chip_; ++i) {
        const int32_t one = ProgramOf(chip, i), image = ProgramOf(turn.chips[c], i);
        if (image_of[one] < 0) {
          image_of[one] = image;
          programs.emplace_back(one, image);
        }
        if (image_of[one] != image) return std::nullopt;
      }
    }
    for (const configs::Link& link : config_.topology.AllLinks()) {
      if (rates_[LinkIndex(link)] != rates_[LinkIndex(turn.Of(link))]) return std::nullopt;
    }
    const std::vector<Color> turned = RoutesUnder(turn);
    for (const Color route : turned) {
      if (std::find(routes_.begin(), routes_.end(), route) == routes_.end()) return std::nullopt;
    }
    return FindRelabeling(program_, programs, [&](int32_t route, int32_t image) {
      return turned[route] == routes_[image];
    });
  }

  const configs::Config& config_;
  const isa::PodProgram& program_;
  const int64_t per_chip_;
  const std::vector<std::vector<int32_t>> used_;
  std::vector<bool> is_used_;
  std::vector<Color> rates_;  // by LinkIndex
  std::vector<Color> chips_;
  std::vector<Color> routes_;  // as they are
};

// Devices and chips by the smallest member of their orbits, and the way from there.
class Orbits {
 public:
  Orbits(const std::vector<Automorphism>& automorphisms, int64_t chips)
      : first_(static_cast<size_t>(chips), -1), view_(static_cast<size_t>(chips), 0) {
    for (int64_t chip = 0; chip < chips; ++chip) {
      if (first_[chip] < 0) Reach(automorphisms, chip);
    }
  }

  const std::vector<int64_t>& first() const { return first_; }
  const std::vector<int32_t>& view() const { return view_; }
  // Returns by view the relabeling from the first member; 0 is the identity and has no tables.
  const std::vector<Relabeling>& relabelings() const { return relabelings_; }

 private:
  void Reach(const std::vector<Automorphism>& automorphisms, int64_t first) {
    first_[first] = first;
    std::vector<int64_t> reached = {first};
    for (size_t i = 0; i < reached.size(); ++i) {
      for (size_t a = 0; a < automorphisms.size(); ++a) {
        const int64_t image = automorphisms[a].chips[reached[i]];
        if (first_[image] >= 0) continue;
        first_[image] = first;
        view_[image] = Extend(automorphisms[a].relabeling, view_[reached[i]], a);
        reached.push_back(image);
      }
    }
  }

  // The view of the image of a chip with this view.
  int32_t Extend(const Relabeling& step, int32_t view, size_t automorphism) {
    const auto [it, fresh] = extended_.try_emplace({view, automorphism}, 0);
    if (!fresh) return it->second;
    const Relabeling relabeling = view == 0 ? step : relabelings_[view].Then(step);
    if (relabeling.IsIdentity()) return it->second = 0;
    const auto known = std::find(relabelings_.begin() + 1, relabelings_.end(), relabeling);
    it->second = static_cast<int32_t>(known - relabelings_.begin());
    if (known == relabelings_.end()) relabelings_.push_back(relabeling);
    return it->second;
  }

  std::vector<int64_t> first_;
  std::vector<int32_t> view_;
  std::vector<Relabeling> relabelings_ = {Relabeling{}};
  std::map<std::pair<int32_t, size_t>, int32_t> extended_;
};

}  // namespace

std::optional<Classes> OrbitsOf(const configs::Config& config, const isa::PodProgram& program,
                                const Impairments& impairments) {
  if (config.topology.slices() > 1 || program.programs.size() > kMaxPrograms) return std::nullopt;
  const std::vector<Automorphism> automorphisms = OrbitSearch(config, program, impairments).Run();
  if (automorphisms.empty()) return std::nullopt;
  const Orbits orbits(automorphisms, config.topology.chips());

  Classes classes;
  std::vector<Color> chips, devices;
  const int64_t per_chip = config.topology.devices_per_chip();
  for (int64_t chip = 0; chip < config.topology.chips(); ++chip) {
    chips.push_back(Hash(static_cast<Color>(orbits.first()[chip])));
    for (int64_t i = 0; i < per_chip; ++i) {
      devices.push_back(Hash(static_cast<Color>(orbits.first()[chip] * per_chip + i)));
      classes.view_of.push_back(orbits.view()[chip]);
    }
  }
  classes.devices = PartitionOf(devices);
  classes.chips = PartitionOf(chips);
  for (const Relabeling& relabeling : orbits.relabelings()) {
    classes.views.push_back({relabeling.Inverse().routes, relabeling.routes, relabeling.flags});
  }
  AddLinks(config, program, impairments, {}, classes);
  return classes;
}

}  // namespace tpusim::sim

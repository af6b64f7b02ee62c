#include "sim/impairments/impairments.h"

#include <fmt/format.h>

#include <algorithm>

#include <optional>
#include <string_view>

#include "configs/number_text.h"
#include "configs/status_macros.h"
#include "models/isa/used_routes.h"
#include "models/timing/collective_timing.h"

namespace tpusim::sim {
namespace {

absl::Status NoChip(std::string_view flag, int64_t chip, const configs::Config& config) {
  return UserError(fmt::format("{}: there is no chip {}; {} has chips 0 to {}", flag, chip,
                               config.name, config.topology.chips() - 1));
}

}  // namespace

double Impairments::ClockFactor(int64_t chip) const {
  double factor = 1;
  for (const SlowChip& slow : chips) {
    if (slow.chip == chip) factor *= slow.factor;
  }
  return factor;
}

double Impairments::LinkFactor(const configs::Link& link) const {
  double factor = 1;
  for (const DegradedLink& degraded : links) {
    if (degraded.link == link) factor *= degraded.factor;
  }
  return factor;
}

BytesPerSecond LinkRate(const configs::Config& config, const Impairments& impairments,
                        const configs::Link& link) {
  const int axis = configs::AxisOf(link.direction);
  return timing::EffectiveLinkRate(config.chip.ici, config.topology.LinksAlong(axis)) *
         impairments.LinkFactor(link);
}

absl::Status CheckNamedOnce(const Impairments& impairments) {
  const std::vector<SlowChip>& chips = impairments.chips;
  for (const SlowChip& slow : chips) {
    if (std::ranges::count(chips, slow.chip, &SlowChip::chip) == 1) continue;
    return UserError(fmt::format("--slow: chip {} is named twice", slow.chip));
  }
  const std::vector<DegradedLink>& links = impairments.links;
  for (const DegradedLink& degraded : links) {
    const configs::Link& link = degraded.link;
    if (std::ranges::count(links, link, &DegradedLink::link) == 1) continue;
    return UserError(fmt::format("--link: {}:{} is named twice", link.chip,
                                 configs::DirectionName(link.direction)));
  }
  return absl::OkStatus();
}

absl::StatusOr<SlowChip> ParseSlowChip(const std::string& text, const configs::Config& config) {
  constexpr std::string_view kPrefix = "chip=";
  const size_t colon = text.find(':');
  if (text.compare(0, kPrefix.size(), kPrefix) == 0 && colon != std::string::npos) {
    const std::string_view view = text;
    const auto chip =
        configs::NumberIn<int64_t>(view.substr(kPrefix.size(), colon - kPrefix.size()));
    const auto factor = configs::NumberIn<double>(view.substr(colon + 1));
    if (chip && factor) {
      if (*chip < 0 || *chip >= config.topology.chips()) return NoChip("--slow", *chip, config);
      if (!(*factor >= kSmallestShare && *factor <= 1)) {
        return UserError(fmt::format("--slow {}: the share of the clock must be from {} to 1", text,
                                     kSmallestShare));
      }
      return SlowChip{*chip, *factor};
    }
  }
  return UserError(fmt::format("--slow {}: give the chip and its speed, such as chip=3:0.8", text));
}

absl::StatusOr<DegradedLink> ParseDegradedLink(const std::string& text,
                                               const configs::Config& config) {
  const size_t colon = text.find(':'), equals = text.find('=');
  if (colon != std::string::npos && equals != std::string::npos && colon < equals) {
    const std::string_view view = text;
    const auto chip = configs::NumberIn<int64_t>(view.substr(0, colon));
    const std::string_view name = view.substr(colon + 1, equals - colon - 1);
    const auto factor = configs::NumberIn<double>(view.substr(equals + 1));
    for (int d = 0; chip && factor && d < configs::kDirections; ++d) {
      const auto direction = static_cast<configs::Direction>(d);
      if (configs::DirectionName(direction) != name) continue;
      if (*chip < 0 || *chip >= config.topology.chips()) return NoChip("--link", *chip, config);
      if (!config.topology.HasLink(*chip, direction)) {
        return UserError(
            fmt::format("--link {}: chip {} of {} has no link {}", text, *chip, config.name, name));
      }
      if (!(*factor == 0 || (*factor >= kSmallestShare && *factor <= 1))) {
        return UserError(fmt::format(
            "--link {}: the share of the rate must be from {} to 1, or 0 for a dead link", text,
            kSmallestShare));
      }
      return DegradedLink{{*chip, direction}, *factor};
    }
  }
  return UserError(
      fmt::format("--link {}: give chip, direction and share of the rate, such as 3:x+=0.5", text));
}

absl::Status CheckRoutes(const isa::PodProgram& program, const Impairments& impairments) {
  bool any_dead = false;
  for (const DegradedLink& degraded : impairments.links) any_dead |= degraded.factor == 0;
  if (!any_dead) return absl::OkStatus();
  const std::vector<std::vector<int32_t>> used = isa::UsedRoutes(program);
  for (int32_t device = 0; device < program.devices(); ++device) {
    for (const int32_t route : used[program.program_of_device[device]]) {
      for (const configs::Link& link : program.routes[route].from[device].links) {
        if (impairments.LinkFactor(link) > 0) continue;
        return UserError(fmt::format(
            "link {}:{} is dead, but device {} sends over it ({}); choose a slice, a device order "
            "or an algorithm that avoids it",
            link.chip, configs::DirectionName(link.direction), device, program.routes[route].name));
      }
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> WithoutEffect(const isa::PodProgram& program,
                                       const Impairments& impairments) {
  std::vector<bool> carries(impairments.links.size());
  if (carries.empty()) return {};
  const std::vector<std::vector<int32_t>> used = isa::UsedRoutes(program);
  for (int32_t device = 0; device < program.devices(); ++device) {
    for (const int32_t route : used[program.program_of_device[device]]) {
      for (const configs::Link& link : program.routes[route].from[device].links) {
        for (size_t n = 0; n < carries.size(); ++n) {
          if (impairments.links[n].link == link) carries[n] = true;
        }
      }
    }
  }
  std::vector<std::string> sentences;
  for (size_t n = 0; n < carries.size(); ++n) {
    const DegradedLink& degraded = impairments.links[n];
    if (carries[n] || degraded.factor == 1) continue;
    sentences.push_back(
        fmt::format("--link {}:{}={:g} has no effect: nothing is sent over it", degraded.link.chip,
                    configs::DirectionName(degraded.link.direction), degraded.factor));
  }
  return sentences;
}

}  // namespace tpusim::sim

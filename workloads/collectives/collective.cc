#include "workloads/collectives/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "configs/memory.h"
#include "configs/name_value.h"
#include "configs/names.h"
#include "configs/status_macros.h"
#include "models/timing/collective_timing.h"
#include "models/timing/kernel_timing.h"
#include "models/timing/reduce_timing.h"
#include "workloads/collectives/bodies.h"
#include "workloads/collectives/choice.h"
#include "workloads/collectives/permute.h"

namespace tpusim::collectives {

namespace {

constexpr std::string_view kKindNames[] = {"all-reduce", "all-gather", "reduce-scatter",
                                           "all-to-all", "collective-permute"};

}  // namespace

std::string_view KindName(CollectiveKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::vector<std::string> KindNames() { return {std::begin(kKindNames), std::end(kKindNames)}; }

std::optional<CollectiveKind> KindOf(std::string_view name) {
  const auto* const found = std::ranges::find(kKindNames, name);
  if (found == std::end(kKindNames)) return std::nullopt;
  return static_cast<CollectiveKind>(found - std::begin(kKindNames));
}

namespace {

std::string Where(const CollectiveRequest& request) {
  return fmt::format("{}{}{}", KindName(request.kind), request.name.empty() ? "" : " ",
                     request.name);
}

std::string OverrideFor(CollectiveKind kind, const AlgorithmOverrides& overrides) {
  std::string name = kCompilersAlgorithm;
  for (const AlgorithmOverride& entry : overrides) {
    if (entry.kind.empty() || entry.kind == KindName(kind)) name = entry.name;
  }
  return name;
}

absl::Status CheckDevice(const configs::Config& config, const std::string& where, int64_t device) {
  if (device >= 0 && device < config.devices()) return absl::OkStatus();
  return UserError(fmt::format("{}: device {} does not exist on {}, which has {} devices", where,
                               device, config.name, config.devices()));
}

absl::Status CheckGroups(const configs::Config& config, const CollectiveRequest& request,
                         const std::string& where) {
  if (request.groups.empty() || request.groups[0].empty()) {
    return UserError(where + ": has no groups of devices; name the members of each");
  }
  std::vector<bool> used(config.devices());
  for (const std::vector<int64_t>& group : request.groups) {
    if (group.size() != request.groups[0].size()) {
      return NoRule(
          fmt::format("{}: groups of {} and of {} devices in one collective; only groups "
                      "of one size can be lowered",
                      where, request.groups[0].size(), group.size()));
    }
    for (const int64_t device : group) {
      RETURN_IF_ERROR(CheckDevice(config, where, device));
      if (used[device]) {
        return UserError(
            fmt::format("{}: device {} is in the groups more than once", where, device));
      }
      used[device] = true;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPairs(const configs::Config& config, const CollectiveRequest& request,
                        const std::string& where) {
  std::vector<bool> sends(config.devices()), receives(config.devices());
  for (const auto& [source, target] : request.pairs) {
    RETURN_IF_ERROR(CheckDevice(config, where, source));
    RETURN_IF_ERROR(CheckDevice(config, where, target));
    if (sends[source] || receives[target]) {
      return UserError(fmt::format("{}: device {} is {} of more than one pair", where,
                                   sends[source] ? source : target,
                                   sends[source] ? "the source" : "the target"));
    }
    sends[source] = receives[target] = true;
  }
  return absl::OkStatus();
}

absl::Status Check(const configs::Config& config, const CollectiveRequest& request) {
  const std::string where = Where(request);
  if (config.topology.devices_per_chip() > 1 &&
      !(config.chip.ici.die_to_die_bytes_per_second.value() > 0)) {
    return UserError(fmt::format(
        "{}: chips of {} hold {} devices, but ici.die_to_die_bytes_per_second says nothing of the "
        "way between them; give it in the chip's file or with --set",
        where, config.chip.name, config.topology.devices_per_chip()));
  }
  if (request.operand_bytes < Bytes(0))
    return UserError(where + ": the operand has a negative size");
  return request.kind == CollectiveKind::kPermute ? CheckPairs(config, request, where)
                                                  : CheckGroups(config, request, where);
}

// Every member receives its part from all others over its own links.
Picoseconds BoundOfParts(const configs::Config& config, const CollectiveRequest& request,
                         const std::vector<int64_t>& group) {
  double worst = 0;
  for (size_t member = 0; member < group.size(); ++member) {
    const int64_t per_chip = config.topology.devices_per_chip();
    double rate = per_chip > 1 ? config.chip.ici.die_to_die_bytes_per_second.value() : 0;
    if (config.topology.slices() > 1) rate += config.chip.host.pcie_bytes_per_second.value();
    for (int d = 0; d < configs::kDirections; ++d) {
      if (!config.topology.HasLink(group[member] / per_chip, static_cast<configs::Direction>(d))) {
        continue;
      }
      rate += config.chip.ici.link_bytes_per_second.value();
    }
    const auto received =
        static_cast<double>(request.parts[member].value()) * static_cast<double>(group.size() - 1);
    if (rate > 0) worst = std::max(worst, received / rate);
  }
  return FromSeconds(worst);
}

}  // namespace

struct CollectiveDecision {
  isa::CollectiveInfo info;
  CollectiveUse use;
  bool local = false;  // nothing has to leave a device
  std::shared_ptr<const std::vector<GroupForm>> forms;
  std::vector<Algorithm> chosen;  // per form
  std::vector<std::string> assumptions;
};

namespace {

Picoseconds Part(Picoseconds time, double share) {
  return Picoseconds(std::llround(static_cast<double>(time.value()) * share));
}

// Returns the use of one algorithm on all its dimensions.
CollectiveUse UseOf(const configs::Config& config, const CollectiveRequest& request,
                    const Algorithm& candidate) {
  CollectiveUse use;
  use.latency = timing::LaunchTime(config.chip);
  use.time = candidate.expected - use.latency;
  // Between its steps a collective waits for hops, and the links are others'.
  Plan no_hops = candidate.plan;
  no_hops.hop_latency = Picoseconds(0);
  for (Dimension& dimension : no_hops.dimensions) dimension.dcn_latency = Picoseconds(0);
  no_hops.barriers = no_hops.refill = Picoseconds(0);
  no_hops.reads.clear();
  no_hops.writes.clear();
  const Picoseconds moving = TimeOf(no_hops, config.chip) - use.latency;
  const std::vector<Dimension>& dimensions = candidate.plan.dimensions;
  // One color takes the dimensions in turns, several keep all of them busy.
  const Picoseconds busy =
      candidate.plan.orders.size() == 1 ? moving / static_cast<int64_t>(dimensions.size()) : moving;
  double bytes_per_second = 0;  // that a device sends while all of that goes on
  const auto use_axis = [&](int axis) {
    for (const bool plus : {true, false}) {
      use.links[static_cast<size_t>(configs::MakeDirection(axis, plus))] = busy;
      use.rate = timing::EffectiveLinkRate(config.chip.ici, config.topology.LinksAlong(axis));
      bytes_per_second += use.rate.value();
    }
  };
  for (const Dimension& dimension : dimensions) {
    if (dimension.axis == kCoreAxis) {
      use.die = busy;
      use.rate = dimension.rate;
      bytes_per_second += dimension.rate.value();
    } else if (dimension.axis == kSliceAxis) {
      use.host = busy;
      use.rate = dimension.rate;
      bytes_per_second += dimension.rate.value();
    } else if (dimension.axis >= 0) {
      use_axis(dimension.axis);
    } else {
      for (int axis = 0; axis < configs::kMaxAxes; ++axis) {
        if (config.topology.shape()[axis] > 1) use_axis(axis);
      }
    }
  }
  const bool adds =
      request.kind == CollectiveKind::kAllReduce || request.kind == CollectiveKind::kReduceScatter;
  const double hbm_bytes_per_second =
      bytes_per_second * (1 + (adds ? timing::kReduceHbmWeight : 1));
  use.hbm = Part(busy, std::min(1.0, hbm_bytes_per_second / configs::HbmRate(config.chip).value()));
  return use;
}

}  // namespace

const CollectiveUse& UseOf(const CollectiveDecision& decision) { return decision.use; }

const isa::CollectiveInfo& InfoOf(const CollectiveDecision& decision) { return decision.info; }

const std::vector<std::string>& AssumptionsOf(const CollectiveDecision& decision) {
  return decision.assumptions;
}

absl::StatusOr<AlgorithmOverride> ParseAlgorithmOverride(const std::string& text) {
  AlgorithmOverride parsed;
  const auto parts = configs::ParseNameAndValue(text);
  if (parts) parsed.kind = parts->name;
  parsed.name = parts ? parts->value : text;
  std::vector<std::string> kinds = KindNames();
  std::erase(kinds, KindName(CollectiveKind::kPermute));
  if (parts && std::ranges::find(kinds, parsed.kind) == kinds.end()) {
    return UserError(fmt::format("no collective \"{}\" with a choice of algorithms; these have: {}",
                                 parsed.kind, configs::Join(kinds, ", ")));
  }
  std::vector<std::string> names = {kCompilersAlgorithm, kBestAlgorithm};
  names.insert(names.end(), Families().begin(), Families().end());
  if (parsed.name != kCompilersAlgorithm && parsed.name != kBestAlgorithm &&
      !IsFamily(parsed.name)) {
    return UserError(
        fmt::format("no algorithm \"{}\"; there are {}", parsed.name, configs::Join(names, ", ")));
  }
  return parsed;
}

absl::StatusOr<std::shared_ptr<const CollectiveDecision>> DecideCollective(
    const configs::Config& config, const CollectiveRequest& request,
    const AlgorithmOverrides& overrides) {
  RETURN_IF_ERROR(Check(config, request));
  const auto decided = std::make_shared<CollectiveDecision>();
  CollectiveDecision& decision = *decided;
  isa::CollectiveInfo& info = decision.info;
  const bool permute = request.kind == CollectiveKind::kPermute;
  const int64_t n = permute ? 0 : static_cast<int64_t>(request.groups[0].size());
  if (request.operand_bytes.value() == 0) {
    decision.local = true;
    info.algorithm = "nothing to transfer";
    info.group_size = n;
  } else if (permute) {
    info = PermuteInfo(config, request);
    decision.use = PermuteUse(config, request);
  } else if (n == 1) {
    decision.local = true;
    info.algorithm = "local copy";
    info.group_size = n;
    info.expected = timing::LocalCopy(config.chip, request.space, request.operand_bytes, 2);
    decision.use.time = decision.use.hbm = info.expected;
    decision.use.rate = configs::HbmRate(config.chip);
  }
  info.kind = std::string(KindName(request.kind));
  info.axes = request.axes;
  info.bytes = request.operand_bytes;
  if (permute || decision.local) return decided;

  info.group_size = n;
  if (request.kind == CollectiveKind::kAllGather) info.bytes = request.operand_bytes * n;
  decision.forms = request.forms != nullptr ? request.forms
                                            : std::make_shared<const std::vector<GroupForm>>(
                                                  FormsOf(config.topology, request.groups));
  for (const GroupForm& form : *decision.forms) {
    ASSIGN_OR_RETURN(Choice choice, Choose(config, request, form,
                                           OverrideFor(request.kind, overrides), Where(request)));
    Algorithm& best = choice.candidate;
    if (!choice.assumption.empty() &&
        std::ranges::find(decision.assumptions, choice.assumption) == decision.assumptions.end()) {
      decision.assumptions.push_back(std::move(choice.assumption));
    }
    // Forms run side by side: the slowest speaks for all.
    if (info.algorithm.empty() || best.expected > info.expected) {
      info.algorithm = best.algorithm;
      info.expected = best.expected;
      decision.use = UseOf(config, request, best);
    }
    Picoseconds bound = BoundOf(config, request, form, info.bytes);
    if (!request.parts.empty()) {
      bound = Picoseconds(0);
      for (const size_t g : form.groups) {
        bound = std::max(bound, BoundOfParts(config, request, request.groups[g]));
      }
    }
    const Picoseconds dcn = DcnBoundOf(config, request, form, info.bytes);
    info.dcn = info.dcn || dcn > bound;
    info.bound = std::max({info.bound, bound, dcn});
    decision.chosen.push_back(std::move(best));
  }
  return decided;
}

LoweredCollective LowerCollective(const configs::Config& config, const CollectiveRequest& request,
                                  const CollectiveDecision& decision, isa::PodProgram& program) {
  Roles roles(config.chip, config.devices());
  FlagTable flags(program);
  if (decision.local) {
    BodyStage stage;
    if (request.operand_bytes.value() > 0) {
      stage.copies.push_back(
          {.from = request.space, .to = request.space, .bytes = request.operand_bytes});
    }
    const int32_t role = roles.Add({stage}, /*local=*/true);
    for (const auto& group : request.groups) {
      for (const int64_t device : group) roles.Assign(device, role);
    }
    if (request.kind == CollectiveKind::kPermute) {
      for (int64_t device = 0; device < config.devices(); ++device) roles.Assign(device, role);
    }
  } else if (request.kind == CollectiveKind::kPermute) {
    AddPermuteBodies(config, request, program, roles);
  } else {
    for (size_t i = 0; i < decision.chosen.size(); ++i) {
      AddBodies(config, request, (*decision.forms)[i], decision.chosen[i], program, flags, roles);
    }
  }
  return {decision.info, roles.bodies(),
          std::make_shared<const std::vector<int32_t>>(roles.role_of_device())};
}

void RunAlone(const LoweredCollective& lowered, isa::PodProgram& program) {
  program.programs = lowered.bodies;
  program.programs.push_back(std::make_shared<const isa::Body>());  // for devices that take no part
  program.program_of_device.clear();
  for (const int32_t role : *lowered.role_of_device) {
    program.program_of_device.push_back(role >= 0 ? role
                                                  : static_cast<int32_t>(lowered.bodies.size()));
  }
}

}  // namespace tpusim::collectives

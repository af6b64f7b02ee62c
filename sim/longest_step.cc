#include "sim/longest_step.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "configs/chip_schema.h"
#include "configs/memory.h"
#include "configs/status_macros.h"
#include "models/isa/instruction_count.h"

namespace tpusim::sim {
namespace {

// Parameters by how the last part of a resource's hierarchical name begins.
constexpr std::pair<std::string_view, const char*> kParameters[] = {
    {"link_", "ici.link_bytes_per_second"},
    {"die_link", "ici.die_to_die_bytes_per_second"},
    {"to_host", "host.pcie_bytes_per_second"},
    {"from_host", "host.pcie_bytes_per_second"},
    {"egress", "host.dcn_bytes_per_second"},
    {"ingress", "host.dcn_bytes_per_second"},
    {"adds", "chip.clock_hz"},
};

// The resource that what was given to it so far takes longest, if that is more than all else:
// half of the time.
std::optional<flow::ResourceId> Bottleneck(const flow::Network& network) {
  std::optional<flow::ResourceId> longest;
  for (uint32_t r = 0; r < network.resources(); ++r) {
    const flow::ResourceId id{r};
    if (2 * network.Demand(id) < ToSeconds(network.now())) continue;
    if (!longest || network.Demand(id) > network.Demand(*longest)) longest = id;
  }
  return longest;
}

// The loop of the program, and not of a collective, that executes most; "" if there is none.
std::string LoopsOf(const isa::PodProgram& program) {
  const isa::InstructionCount count = isa::CountInstructions(program);
  for (const isa::OpInfo& op : program.info.ops) {
    if (op.name != count.loop || op.category != "while") continue;
    return fmt::format("; most of its instructions are in the {} passes of {} (--trip-count)",
                       count.passes, count.loop);
  }
  return "";
}

}  // namespace

std::string ParameterOf(const std::string& resource) {
  const std::string_view last = std::string_view(resource).substr(resource.rfind('.') + 1);
  for (const isa::MemorySpace space : configs::kRatedSpaces) {
    const configs::Memory& memory = configs::MemoryOf(space);
    if (last.starts_with(memory.name)) return configs::RateParameter(memory);
  }
  for (const auto& [name, parameter] : kParameters) {
    if (last.starts_with(name)) return parameter;
  }
  return "";
}

absl::Status TooLong(const std::optional<PassesAhead>& ahead, const flow::Network& network,
                     const configs::Config& config, const isa::PodProgram& program) {
  std::string message =
      fmt::format("the step takes more than {} days, the longest that is simulated", kLongestDays);
  if (ahead) {
    message += fmt::format("; a loop has {} more passes of {:.3g} us", ahead->passes,
                           ToMicroseconds(ahead->period));
  }
  const std::string loops = LoopsOf(program);
  const std::optional<flow::ResourceId> bottleneck = Bottleneck(network);
  if (!bottleneck) {
    return UserError(fmt::format(
        "{}{}{}", message, loops,
        loops.empty() ? fmt::format("; what takes the time is arithmetic at chip.clock_hz = {}",
                                    configs::FormatNumber(config.chip.clock.value()))
                      : ""));
  }
  const std::string& name = network.Name(*bottleneck);
  message += fmt::format("; most of it is what goes through {} at {} per second", name,
                         configs::FormatNumber(network.Capacity(*bottleneck)));
  const std::string parameter = ParameterOf(name);
  if (const configs::Parameter* known = configs::FindParameter(parameter)) {
    message += fmt::format(" ({} = {})", parameter, configs::FormatNumber(known->get(config.chip)));
  }
  return UserError(message + loops);
}

}  // namespace tpusim::sim

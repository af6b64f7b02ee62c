// tpusim collective: how long one collective takes on a slice, alone, and why.
#include "workloads/collectives/collective.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "configs/config.h"
#include "configs/names.h"
#include "configs/quantity_text.h"
#include "configs/status_macros.h"
#include "sim/results/report/text.h"
#include "sim/simulate.h"
#include "tools/tpusim/command_line/command.h"
#include "tools/tpusim/command_line/help.h"
#include "tools/tpusim/command_line/producer.h"
#include "tools/tpusim/output/console.h"
#include "workloads/collectives/box.h"
#include "workloads/collectives/candidates.h"

namespace tpusim::tools {
namespace {

// The width where stdout is no terminal.
constexpr size_t kUsualColumns = 100;

using collectives::CollectiveKind;
using results::BytesText;
using results::TimeText;

struct CollectiveFlags {
  std::string kind, size, config, axes, algorithm;
  std::vector<std::string> overrides;
  bool json = false;
};

absl::StatusOr<CollectiveKind> ParseKind(const std::string& text) {
  if (const std::optional<CollectiveKind> kind = collectives::KindOf(text)) return *kind;
  const std::vector<std::string> names = collectives::KindNames();
  return UserError(fmt::format("no collective {}; there are {}; the nearest is {}", text,
                               fmt::join(names, ", "), configs::Nearest(text, names)));
}

absl::StatusOr<Bytes> SizeOf(const std::string& text) {
  const auto parsed = configs::ParseQuantity(text, "bytes");
  if (!parsed || parsed->factor || !(parsed->value >= 1 && parsed->value <= 1e15)) {
    return UserError(fmt::format("\"{}\" is not a size, such as 64MiB or 1e6", text));
  }
  return Bytes(std::llround(parsed->value));
}

// "xy" -> {0, 1}; all axes that are longer than one device if not given.
absl::StatusOr<std::vector<int>> AxesOf(const std::string& text, const configs::Config& config) {
  constexpr std::string_view kNames = "xyz";
  std::vector<int> axes;
  if (text.empty()) return std::vector<int>{0, 1, 2, collectives::kCoreAxis};
  for (const char c : text) {
    if (c == ',') continue;
    const size_t axis = kNames.find(c);
    if (axis != std::string_view::npos) {
      axes.push_back(static_cast<int>(axis));
    } else if (c == 'c') {
      axes.push_back(collectives::kCoreAxis);
    } else {
      return UserError(fmt::format(
          "--axes {}: axes are x, y, z, and c for the devices of a chip, such as xy", text));
    }
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  if (collectives::GroupsAlong(config.topology, axes).front().size() < 2) {
    return UserError(fmt::format("--axes {}: {} is one device long there", text, config.name));
  }
  return axes;
}

collectives::CollectiveRequest RequestOf(const configs::Config& config, CollectiveKind kind,
                                         Bytes size, const std::vector<int>& axes) {
  collectives::CollectiveRequest request;
  request.kind = kind;
  request.name = collectives::KindName(kind);
  request.groups = collectives::GroupsAlong(config.topology, axes);
  const auto members = static_cast<int64_t>(request.groups.front().size());
  request.operand_bytes = kind == CollectiveKind::kAllGather
                              ? Bytes(std::max<int64_t>(1, CeilDiv(size.value(), members)))
                              : size;
  if (kind != CollectiveKind::kPermute) return request;
  // Everybody to the next, the last one to the first.
  for (const std::vector<int64_t>& group : request.groups) {
    for (size_t m = 0; m < group.size(); ++m) {
      request.pairs.emplace_back(group[m], group[(m + 1) % group.size()]);
    }
  }
  request.groups.clear();
  return request;
}

// Another way to do it.
struct Alternative {
  std::string name, algorithm;
  Picoseconds expected;
};

// Returns the algorithms that apply, the fastest first; of equal ones the first.
std::vector<Alternative> Alternatives(const configs::Config& config,
                                      const collectives::CollectiveRequest& request) {
  std::vector<Alternative> all;
  if (request.kind == CollectiveKind::kPermute) return all;
  for (const std::string& family : collectives::Families()) {
    const auto decision = collectives::DecideCollective(config, request, {{"", family}});
    if (!decision.ok()) continue;
    const isa::CollectiveInfo& info = collectives::InfoOf(**decision);
    if (std::ranges::find(all, info.algorithm, &Alternative::algorithm) == all.end()) {
      all.push_back({family, info.algorithm, info.expected});
    }
  }
  std::ranges::stable_sort(all, {}, &Alternative::expected);
  return all;
}

// Returns the time of the algorithm for next to no bytes: launch and hops.
Picoseconds LatencyOf(const configs::Config& config, collectives::CollectiveRequest request,
                      const isa::CollectiveInfo& info,
                      const std::vector<Alternative>& alternatives) {
  collectives::AlgorithmOverrides same;
  for (const Alternative& a : alternatives) {
    if (a.algorithm == info.algorithm) same = {{"", a.name}};
  }
  request.operand_bytes = Bytes(1);
  const auto decision = collectives::DecideCollective(config, request, same);
  if (!decision.ok()) return Picoseconds(0);
  return std::min(collectives::InfoOf(**decision).expected, info.expected);
}

absl::Status Collective(const CollectiveFlags& flags) {
  ASSIGN_OR_RETURN(const CollectiveKind kind, ParseKind(flags.kind));
  ASSIGN_OR_RETURN(const Bytes size, SizeOf(flags.size));
  ASSIGN_OR_RETURN(const configs::Config config,
                   configs::LoadConfig(flags.config, flags.overrides));
  if (config.devices() < 2) {
    return UserError(fmt::format("{} is one device: it has nobody to talk to", config.name));
  }
  ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(flags.axes, config));
  const collectives::CollectiveRequest request = RequestOf(config, kind, size, axes);
  const auto groups = static_cast<int64_t>(collectives::GroupsAlong(config.topology, axes).size());

  collectives::AlgorithmOverrides algorithms;
  if (!flags.algorithm.empty()) {
    ASSIGN_OR_RETURN(collectives::AlgorithmOverride parsed,
                     collectives::ParseAlgorithmOverride(flags.algorithm));
    algorithms.push_back(std::move(parsed));
  }
  ASSIGN_OR_RETURN(const auto decision, collectives::DecideCollective(config, request, algorithms));
  isa::PodProgram program;
  const collectives::LoweredCollective lowered =
      collectives::LowerCollective(config, request, *decision, program);
  collectives::RunAlone(lowered, program);
  ASSIGN_OR_RETURN(const sim::Timeline timeline, sim::Simulate(config, program, {}));

  const isa::CollectiveInfo& info = lowered.info;
  const std::vector<Alternative> alternatives = Alternatives(config, request);
  const Picoseconds latency = LatencyOf(config, request, info, alternatives);
  const Picoseconds moving = info.expected - latency;
  if (flags.json) {
    nlohmann::ordered_json j = results::HeadOf("tpusim.collective/1", ThisProducer());
    j.update(nlohmann::ordered_json{{"kind", info.kind},
                                    {"config", config.name},
                                    {"bytes", info.bytes.value()},
                                    {"groups", groups},
                                    {"group_size", config.devices() / groups},
                                    {"simulated_ns", ToNanoseconds(timeline.step_time)},
                                    {"expected_ns", ToNanoseconds(info.expected)},
                                    {"latency_ns", ToNanoseconds(latency)},
                                    {"bandwidth_ns", ToNanoseconds(moving)},
                                    {"bound_ns", ToNanoseconds(info.bound)},
                                    {"algorithm", info.algorithm},
                                    {"alternatives", nlohmann::ordered_json::array()},
                                    {"assumptions", collectives::AssumptionsOf(*decision)}});
    for (const Alternative& a : alternatives) {
      j["alternatives"].push_back({{"name", a.name},
                                   {"algorithm", a.algorithm},
                                   {"expected_ns", ToNanoseconds(a.expected)}});
    }
    return PrintResult(results::JsonText(j));
  }
  std::string text = fmt::format(
      "{} of {} on {}, {} group{} of {}\n"
      "simulated  {}\n"
      "expected   {}: latency {}, bandwidth {}\n"
      "bound      {} ({} of simulated)\n"
      "algorithm  {}\n",
      info.kind, BytesText(info.bytes), config.name, groups, groups == 1 ? "" : "s",
      config.devices() / groups, TimeText(timeline.step_time), TimeText(info.expected),
      TimeText(latency), TimeText(moving), TimeText(info.bound),
      results::PercentText(Ratio(info.bound, timeline.step_time)), info.algorithm);
  for (const std::string& assumption : collectives::AssumptionsOf(*decision)) {
    text += "assumed    " + assumption + "\n";
  }
  if (alternatives.size() > 1) {
    std::vector<std::vector<std::string>> table = {{"--algorithm", "expected", "<algorithm"}};
    for (const Alternative& a : alternatives) {
      table.push_back({a.name, TimeText(a.expected), a.algorithm});
    }
    text += "\n";
    text += results::TableText(table, ResultColumns(kUsualColumns));
  }
  return PrintResult(text);
}

}  // namespace

Command AddCollective(CLI::App& parent) {
  auto flags = std::make_shared<CollectiveFlags>();
  CLI::App* app = parent.add_subcommand(
      "collective", "Simulate one collective alone, such as all-reduce 64MiB v7x-2x2x4");
  app->add_option("kind", flags->kind,
                  "all-reduce, all-gather, reduce-scatter, all-to-all or collective-permute (to "
                  "the next member)")
      ->type_name("KIND")
      ->required();
  app->add_option("size", flags->size,
                  "Bytes of the whole array of a group (all-to-all: of one device), such as "
                  "64MiB")
      ->type_name("SIZE")
      ->required();
  app->add_option("config", flags->config, "Slice, such as v5e-4x2")
      ->type_name("CONFIG")
      ->required();
  app->add_option("--axes", flags->axes,
                  "Groups along these axes of the torus (x, y, z; c: the devices of a chip), such "
                  "as xy (default: all devices are one group)")
      ->type_name("AXES");
  app->add_option(
         "--algorithm", flags->algorithm,
         "The TPU compiler's choice (compiler, the default), the fastest (best), or one by name")
      ->type_name("ALGORITHM");
  app->add_option("--set", flags->overrides, "Override a parameter (tpusim configs CHIP)")
      ->type_name("PARAMETER=VALUE")
      ->allow_extra_args(false);
  app->add_flag("--json", flags->json, "Print JSON");
  AddExamples(*app, {{"tpusim collective all-reduce 64MiB v5e-4x4", "over the whole slice"},
                     {"tpusim collective all-gather 1GiB v7x-2x2x4 --axes xy", "over two axes"}});
  return {app, [flags] { return Collective(*flags); }};
}

}  // namespace tpusim::tools

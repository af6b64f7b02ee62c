#include "tools/tpusim/advise/advice_variants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "configs/chip_schema.h"
#include "configs/config.h"
#include "configs/memory.h"
#include "configs/mesh_layouts.h"
#include "configs/status_macros.h"
#include "sim/results/report/text.h"
#include "tools/tpusim/output/console.h"
#include "workloads/sharding/stated/stated_constraints.h"

namespace tpusim::tools {
namespace {

// A part of the machine: what is set by which factor. Other sizes make the compiler make another
// program, speeds do not.
struct MachineChange {
  std::string name, factor;
  std::vector<std::string> parameters;
};

const std::vector<MachineChange>& MachineChanges() {
  static const auto* changes = [] {
    auto* all = new std::vector<MachineChange>{
        {"clock x2", "2x", {"chip.clock_hz"}},
        {"matrix arrays x2",
         "2x",
         {"chip.mxu.lhs_rows_per_cycle", "chip.mxu.weight_rows_per_cycle"}},
        {"vector units x2",
         "2x",
         {"chip.vpu.alus_per_lane", "chip.vpu.eup_slots", "chip.vpu.load_slots",
          "chip.vpu.store_slots", "chip.vpu.xlu_count"}},
        {"links x2", "2x", {"ici.link_bytes_per_second", "ici.die_to_die_bytes_per_second"}},
        {"link latency / 2", "0.5x", {"ici.hop_latency_ns"}},
        {"launch of collectives / 2", "0.5x", {"ici.launch_ns"}},
        {"launch of kernels / 2",
         "0.5x",
         {"chip.tensor_core.kernel_launch_ns", "chip.tensor_core.product_window_ns",
          "chip.tensor_core.grid_step_overhead_ns"}},
        {"latency of DMA / 2",
         "0.5x",
         {"chip.dma.start_latency_ns", "chip.dma.write_start_latency_ns",
          "chip.dma.turnaround_ns"}},
        {"PCIe x2", "2x", {"host.pcie_bytes_per_second"}},
        {"data-centre network x2", "2x", {"host.dcn_bytes_per_second"}},
        {"latency of the data-centre network / 2", "0.5x", {"host.dcn_latency_ns"}},
        {"VMEM x2",
         "2x",
         {"chip.vmem.bytes", "chip.vmem.scoped_bytes", "chip.vmem.reserved_bytes"}},
        {"HBM x2", "2x", {"chip.hbm.bytes"}},
    };
    std::vector<MachineChange> rates;
    for (const configs::MemorySpace space : configs::kRatedSpaces) {
      const configs::Memory& memory = configs::MemoryOf(space);
      rates.push_back(
          {fmt::format("{} bandwidth x2", memory.title), "2x", {RateParameter(memory)}});
    }
    // Before the links.
    all->insert(std::ranges::find(*all, "links x2", &MachineChange::name), rates.begin(),
                rates.end());
    return all;
  }();
  return *changes;
}

// Passes that buy one thing with another, so that a program may be better without.
constexpr std::string_view kTrades[] = {
    "windowed-einsum",  "repeat-all-gathers",   "combine-all-reduces", "combine-reduce-scatters",
    "hoist-invariants", "pipeline-host-copies", "rematerialize"};

// Layouts that are tried, beside those that have a name.
constexpr size_t kMostLayouts = 6;
// Other shapes of the slice, and of the mesh.
constexpr size_t kMostSlices = 3, kMostMeshes = 12;
// Places at which constraints are tried.
constexpr size_t kMostSites = 10;
// Distances that differ by less, in hops on average, are equal.
constexpr double kNearlyEqual = 1e-9;

class VariantCollector {
 public:
  VariantCollector(const Prepared& base, const std::string& config, const ProgramFlags& flags)
      : base_(base), config_(config), flags_(QuietFlags(flags)) {
    for (const sharding::MeshAxis& axis : base.compiled.mesh.axes) {
      mesh_.push_back({axis.name, axis.size});
    }
  }

  std::vector<Variant> Take() {
    Meshes();
    DeviceOrders();
    Slices();
    Algorithms();
    Passes();
    Donation();
    return std::move(variants_);
  }

 private:
  Variant& Add(std::string kind, std::string name, std::string why) {
    variants_.push_back({std::move(kind), std::move(name), std::move(why), {}, config_, flags_});
    return variants_.back();
  }

  // Adds meshes of as many devices along the same axes, those most like the present one first.
  void Meshes() {
    if (!base_.compiled.mesh_is_free || base_.config.topology.slices() > 1) return;
    std::vector<int64_t> now;
    for (const configs::NamedAxis& axis : mesh_) now.push_back(axis.size);
    std::vector<std::vector<int64_t>> shapes;
    std::vector<int64_t> shape;
    AddShapes(base_.compiled.workload.num_partitions(), mesh_.size(), shape, shapes);
    std::erase(shapes, now);
    const auto distance = [&](const std::vector<int64_t>& other) {
      double sum = 0;
      for (size_t i = 0; i < now.size(); ++i) {
        sum += std::abs(std::log2(static_cast<double>(other[i]) / static_cast<double>(now[i])));
      }
      return sum;
    };
    std::ranges::stable_sort(shapes, {}, distance);
    shapes.resize(std::min(shapes.size(), kMostMeshes));
    for (const std::vector<int64_t>& other : shapes) {
      std::vector<std::string> axes;
      for (size_t i = 0; i < mesh_.size(); ++i) {
        axes.push_back(fmt::format("{}={}", mesh_[i].name, other[i]));
      }
      const std::string text = fmt::format("{}", fmt::join(axes, ","));
      Variant& v = Add("mesh", "mesh " + text, "");
      v.options = {"--mesh", text};
      v.program.mesh = text;
    }
  }

  static void AddShapes(int64_t devices, size_t axes, std::vector<int64_t>& shape,
                        std::vector<std::vector<int64_t>>& shapes) {
    if (axes <= 1) {
      if (axes == 0) return;
      shapes.push_back(shape);
      shapes.back().push_back(devices);
      return;
    }
    for (int64_t size = 1; size <= devices; ++size) {
      if (devices % size != 0) continue;
      shape.push_back(size);
      AddShapes(devices / size, axes - 1, shape, shapes);
      shape.pop_back();
    }
  }

  void DeviceOrders() {
    const std::vector<int64_t>& now = base_.compiled.device_of_partition;
    std::set<std::vector<int64_t>> seen = {now};
    std::vector<int64_t> ids(now.size());
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i);
    if (seen.insert(ids).second) DeviceOrder("device order ids", ids, "ids");
    if (mesh_.empty()) return;
    std::vector<int64_t> sizes;
    for (const configs::NamedAxis& axis : mesh_) sizes.push_back(axis.size);
    const auto made = configs::DeviceOrder(
        base_.config, sizes, base_.compiled.workload.jax_version(), /*rule=*/nullptr);
    if (made.ok() && made->size() == now.size() && seen.insert(*made).second) {
      DeviceOrder("device order of make_mesh", *made, fmt::format("{}", fmt::join(*made, ",")));
    }
    for (const configs::MeshLayout& layout :
         configs::MeshLayouts(base_.config.topology, mesh_, kMostLayouts)) {
      const std::vector<int64_t>& order = layout.device_of_partition;
      if (order.size() != now.size() || !seen.insert(order).second) continue;
      DeviceOrder(fmt::format("device order: {}", layout.text), order,
                  fmt::format("{}", fmt::join(order, ",")));
    }
  }

  void DeviceOrder(std::string name, const std::vector<int64_t>& order, const std::string& option) {
    Variant& v = Add("device order", std::move(name), Distances(order));
    v.options = {"--device-order", option};
    v.program.device_order = option;
  }

  // Says for which axis the distance changes most, and how.
  std::string Distances(const std::vector<int64_t>& order) const {
    const configs::Topology& topology = base_.config.topology;
    std::string text;
    double most = 1;
    for (size_t axis = 0; axis < mesh_.size(); ++axis) {
      const double now =
          configs::MeanHops(topology, mesh_, base_.compiled.device_of_partition, axis);
      const double then = configs::MeanHops(topology, mesh_, order, axis);
      if (now <= then + kNearlyEqual) continue;
      const double ratio = now / std::max(then, 0.1);
      if (ratio <= most) continue;
      most = ratio;
      text = mesh_[axis].size == 2
                 ? fmt::format("`{}` neighbours: {} now, {} with this order", mesh_[axis].name,
                               Hops(now), Number(then))
                 : fmt::format("`{}` members: {} apart on average now, {} with this order",
                               mesh_[axis].name, Hops(now), Number(then));
    }
    return text;
  }
  static std::string Number(double hops) {
    const double rounded = std::round(hops * 10) / 10;
    return fmt::format("{}", rounded);
  }
  static std::string Hops(double hops) {
    return fmt::format("{} hop{}", Number(hops), Number(hops) == "1" ? "" : "s");
  }

  void Slices() {
    const configs::Topology& topology = base_.config.topology;
    const std::string now = base_.config.name;
    // A file says more than which slice.
    if (topology.slices() > 1 || config_.ends_with(".json")) return;
    const std::string& chip = base_.config.chip.name;
    size_t tried = 0;
    for (const std::string& slice : configs::SliceNames(chip)) {
      const std::string name = fmt::format("{}-{}", chip, slice);
      const auto other = configs::LoadConfig(name, {});
      if (!other.ok() || other->name == now || other->devices() != base_.config.devices()) continue;
      if (tried++ == kMostSlices) break;
      // A list of devices is of one slice.
      const bool listed = flags_.device_order.find(',') != std::string::npos;
      if (listed) continue;
      Variant& v = Add("slice", "slice " + name, "as many chips");
      v.options = {"--config", name};
      v.config = name;
    }
  }

  void Algorithms() {
    std::set<std::string> kinds;
    for (const isa::CollectiveInfo& c : base_.compiled.program.info.collectives) {
      if (c.group_size > 1) kinds.insert(c.kind);
    }
    std::vector<std::string> options;
    for (const std::string& kind : kinds) {
      const std::string option = kind + "=best";
      if (collectives::ParseAlgorithmOverride(option).ok()) options.push_back(option);
    }
    for (const std::string& option : options) {
      Variant& v =
          Add("algorithm", fmt::format("fastest algorithm: {}", option.substr(0, option.find('='))),
              "the TPU compiler takes another");
      v.options = {"--algorithm", option};
      v.program.algorithms.push_back(option);
    }
    if (options.size() < 2) return;
    Variant& v =
        Add("algorithm", "fastest algorithms of all collectives", "the TPU compiler takes others");
    v.options = {"--algorithm", "best"};
    v.program.algorithms.emplace_back("best");
  }

  void Passes() {
    if (!flags_.passes.empty()) return;
    for (const std::string_view pass : kTrades) {
      const auto changed = [&](const passes::PassRun& run) {
        return run.pass == pass && run.changed;
      };
      if (!std::ranges::any_of(base_.compiled.pass_runs, changed)) continue;
      Variant& v = Add("compiler", fmt::format("without {}", pass), "");
      v.options = {fmt::format("--passes=-{}", pass)};
      v.program.passes = fmt::format("-{}", pass);
    }
  }

  void Donation() {
    if (flags_.donate) return;
    Variant& v = Add("donation", "donate all arguments", "results take their place");
    v.options = {"--donate"};
    v.program.donate = true;
  }

  const Prepared& base_;
  const std::string config_;
  ProgramFlags flags_;
  std::vector<configs::NamedAxis> mesh_;
  std::vector<Variant> variants_;
};

// "dot.1,dot.2" and "P('x', None)" of "dot.1,dot.2=P('x', None)", which the report has.
configs::NameAndValue PartsOf(std::string_view constraint) {
  return sharding::ParseValueAndSharding(constraint).value();
}

// "dot.1 and 3 more"
std::string ValuesOf(std::string_view constraint) {
  const std::string_view values = PartsOf(constraint).name;
  const auto more = std::ranges::count(values, ',');
  const std::string_view first = values.substr(0, values.find(','));
  return more == 0 ? std::string(first) : fmt::format("{} and {} more", first, more);
}

// In quotes where a shell would read it as something else.
std::string ForShell(const std::string& option) {
  const bool plain = option.find_first_of(" ()*;'{}[]") == std::string::npos;
  return plain ? option : fmt::format("\"{}\"", option);
}

std::string WhyConstrain(const results::ReshardSiteReport& r, std::string_view constraint) {
  const isa::ReshardSite& site = r.site;
  return fmt::format("{}: {} of {}, {} exposed; jax.lax.with_sharding_constraint(..., {})",
                     site.source.empty() ? site.scope : site.source, site.kind,
                     results::BytesText(site.whole), results::TimeText(r.exposed),
                     PartsOf(constraint).value);
}

}  // namespace

std::vector<Variant> ShardingVariants(const std::vector<results::ReshardSiteReport>& sites,
                                      const std::string& config, const ProgramFlags& flags) {
  std::vector<Variant> variants;
  const auto add = [&](std::string name, std::string why,
                       const std::vector<std::string>& constraints) {
    Variant v{"sharding", std::move(name), std::move(why), {}, config, QuietFlags(flags)};
    for (const std::string& constraint : constraints) {
      v.options.insert(v.options.end(), {"--constrain", constraint});
      v.program.constraints.push_back(constraint);
    }
    variants.push_back(std::move(v));
  };
  std::vector<std::string> firsts;
  std::set<std::string> seen, constrained;
  for (const results::ReshardSiteReport* r : results::SitesThatMatter(sites, kMostSites)) {
    bool is_first = true;
    for (const isa::ReshardSite::Constraint& constraint : r->site.constraints) {
      if (!seen.insert(constraint.text).second) continue;
      add(fmt::format("constrain {} to {}", ValuesOf(constraint.text),
                      PartsOf(constraint.text).value),
          WhyConstrain(*r, constraint.text), {constraint.text});
      // Of two constraints on one value the first one counts.
      const std::string_view values = PartsOf(constraint.text).name;
      if (is_first && constrained.emplace(values).second) firsts.push_back(constraint.text);
      is_first = false;
    }
  }
  if (firsts.size() > 1) {
    add(fmt::format("constrain all {} places at once", firsts.size()), "", firsts);
  }
  return variants;
}

std::string WhyOf(const Variant& variant) {
  constexpr size_t kReadable = 80;
  std::vector<std::string> quoted;
  for (const std::string& option : variant.options) quoted.push_back(ForShell(option));
  const std::string options = fmt::format("{}", fmt::join(quoted, " "));
  if (variant.why.empty()) return options;
  return options.size() > kReadable ? variant.why : fmt::format("{} ({})", variant.why, options);
}

std::string Trials::FailedText() const {
  std::string text;
  for (const auto& [variant, reason] : failed) {
    text += fmt::format("{:<14} {}: {}\n", "not possible", variant->name, reason);
  }
  return text;
}

nlohmann::ordered_json Trials::FailedJson() const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [variant, reason] : failed) {
    rows.push_back({{"kind", variant->kind},
                    {"name", variant->name},
                    {"options", variant->options},
                    {"reason", reason}});
  }
  return rows;
}

std::vector<Question> QuestionsOf(const std::vector<Variant>& variants) {
  std::vector<Question> questions;
  for (const Variant& variant : variants) questions.push_back({variant.name});
  return questions;
}

absl::StatusOr<Trials> TrialsOf(const std::vector<Variant>& variants,
                                const std::vector<VerdictOr>& verdicts) {
  Trials trials;
  for (size_t i = 0; i < variants.size(); ++i) {
    const VerdictOr& verdict = verdicts[i];
    if (verdict.ok()) {
      trials.ran.emplace_back(&variants[i], *verdict);
    } else if (absl::IsInternal(verdict.status())) {
      return absl::InternalError(
          fmt::format("{}: {}", variants[i].name, Message(verdict.status())));
    } else {
      trials.failed.emplace_back(&variants[i], OneLine(Message(verdict.status())));
    }
  }
  return trials;
}

ProgramFlags QuietFlags(ProgramFlags flags) {
  flags.quiet = true;
  flags.verbose = flags.pass_timings = false;
  // The passes are those of the run, which has been verified.
  flags.verify_passes = false;
  return flags;
}

std::vector<Variant> ChipVariants(const configs::Config& machine, const std::string& config,
                                  const ProgramFlags& flags) {
  std::vector<Variant> variants;
  for (const MachineChange& change : MachineChanges()) {
    Variant v{std::string(kOfTheChip), change.name, "", {}, config, QuietFlags(flags)};
    const bool of_dcn = change.parameters.front().starts_with("host.dcn");
    if (of_dcn && machine.topology.slices() == 1) continue;
    for (const std::string& path : change.parameters) {
      // What a chip does not have, or where there is nothing to gain.
      if (configs::FindParameter(path)->get(machine.chip) == 0) continue;
      const std::string text = fmt::format("{}={}", path, change.factor);
      v.options.insert(v.options.end(), {"--set", text});
      v.program.overrides.push_back(text);
    }
    if (!v.options.empty()) variants.push_back(std::move(v));
  }
  return variants;
}

std::vector<Variant> ProgramVariants(const Prepared& base, const std::string& config,
                                     const ProgramFlags& flags) {
  return VariantCollector(base, config, flags).Take();
}

}  // namespace tpusim::tools

#include "workloads/search/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/compiler/session.h"
#include "workloads/cost/chip_cost_model.h"
#include "workloads/hlo/ir/attributes.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/loops/loops.h"
#include "workloads/passes/pipeline/pass.h"
#include "workloads/passes/simplify/simplify.h"
#include "workloads/search/matrix_time.h"
#include "workloads/search/policies.h"
#include "workloads/search/whole_reads.h"
#include "workloads/sharding/stated/stated_shardings.h"
#include "workloads/target/target.h"

namespace tpusim::search {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool IsCounted(const Instruction& i) {
  return i.opcode() == Opcode::kDot || i.opcode() == Opcode::kConvolution;
}

// Writes names of products into their metadata, which what becomes of a product keeps.
void NameProducts(hlo::Module& module) {
  for (hlo::Computation* computation : module.computations()) {
    for (Instruction* i : computation->instructions()) {
      if (IsCounted(*i)) i->mutable_attrs().mutable_metadata()->set_op_type(i->name());
    }
  }
}

// Seconds by name of the products that run whatever the program's data are.
class Products {
 public:
  Products(const target::Target& target, compiler::TripCounts& trips)
      : target_(target), trips_(trips) {}

  absl::Status Add(const hlo::Computation& computation, double times) {
    for (const Instruction* i : computation.instructions()) {
      if (i->opcode() == Opcode::kWhile) {
        ASSIGN_OR_RETURN(const int64_t trips, trips_(*i));
        for (const hlo::Computation* called : i->called()) {
          RETURN_IF_ERROR(Add(*called, times * static_cast<double>(trips)));
        }
      } else if (i->opcode() == Opcode::kCall) {
        for (const hlo::Computation* called : i->called()) RETURN_IF_ERROR(Add(*called, times));
      } else if (IsCounted(*i)) {
        seconds[i->attrs().metadata().op_type()] += times * MatrixSeconds(*i, target_);
      }
    }
    return absl::OkStatus();
  }

  std::map<std::string, double> seconds;

 private:
  const target::Target& target_;
  compiler::TripCounts& trips_;
};

// Returns, by dimension, the names of axes that the program states; empty where it states none.
std::vector<std::vector<std::string>> OwnAxesOf(const Instruction* argument,
                                                const sharding::NormalisedModule& module) {
  std::vector<std::vector<std::string>> dims;
  const sharding::Sharding* said = sharding::SaidOf(argument, module);
  if (said == nullptr) return dims;
  for (const sharding::DimSharding& dim : said->dims) {
    std::vector<std::string>& axes = dims.emplace_back();
    for (const sharding::AxisRef& axis : dim.axes) {
      axes.push_back(module.mesh.mesh.axes[axis.axis].name);
    }
  }
  return dims;
}

// Products of bodies that say what each device does: nothing splits them any more.
std::set<std::string> ProductsOfDevices(const sharding::NormalisedModule& normalised) {
  std::set<std::string> products;
  std::set<const hlo::Computation*> seen;
  std::vector<const hlo::Computation*> work;
  for (const auto& [call, region] : normalised.manual_regions) {
    if (!region.partitioned) work.push_back(call->called()[0]);
  }
  while (!work.empty()) {
    const hlo::Computation* computation = work.back();
    work.pop_back();
    if (!seen.insert(computation).second) continue;
    for (const Instruction* i : computation->instructions()) {
      if (IsCounted(*i)) products.insert(i->name());
      work.insert(work.end(), i->called().begin(), i->called().end());
    }
  }
  return products;
}

// Fills in what follows from the module of a variant.
absl::Status Fill(const target::Target& target, compiler::TripCounts& trips,
                  const std::vector<std::string>& constrainable,
                  const hlo::ImportedWorkload& imported, Variant& variant) {
  ASSIGN_OR_RETURN(variant.decisions,
                   sharding::FindDecisions(*variant.source.normalised, constrainable));
  cost::ChipCostModel costs(target, {}, {}, [&](const Instruction& loop) { return trips(loop); });
  const passes::PassContext context(target, costs);
  // What the compiler finds to be computed twice, or alike in every iteration, runs once.
  const std::unique_ptr<hlo::Module> module = variant.source.normalised->module->Clone();
  NameProducts(*module);
  RETURN_IF_ERROR(passes::Simplify(*module, context).status());
  RETURN_IF_ERROR(passes::HoistInvariants(*module, context).status());
  module->Cleanup();
  const auto trips_of = [&](const Instruction& loop) { return trips(loop); };
  for (const Bytes bytes : BytesRead(*module, imported.workload, trips_of)) {
    variant.read_seconds.push_back(static_cast<double>(bytes.value()) /
                                   target.chip().hbm.bytes_per_second.value());
  }
  Products products(target, trips);
  RETURN_IF_ERROR(products.Add(*module->entry(), 1));
  variant.work.assign(variant.decisions.all.size(), 0);
  double all = 0;
  for (const auto& [name, seconds] : products.seconds) all += seconds;
  for (const auto& [name, loops, reach] : variant.decisions.products) {
    const auto found = products.seconds.find(name);
    if (found == products.seconds.end()) continue;
    variant.products.push_back({name, found->second, reach});
    for (const int32_t decision : loops) {
      variant.work[static_cast<size_t>(decision)] += found->second / all;
    }
  }
  for (const std::string& name : ProductsOfDevices(*variant.source.normalised)) {
    const auto found = products.seconds.find(name);
    if (found != products.seconds.end()) variant.products.push_back({name, found->second, {}});
  }
  return absl::OkStatus();
}

// Fills in what the program itself states.
void Describe(const sharding::NormalisedModule& normalised, Program& program) {
  program.keeps_mesh = !normalised.manual_regions.empty();
  program.mesh = normalised.mesh.mesh;
  for (const Instruction* argument : normalised.module->entry()->parameters()) {
    program.own.push_back(OwnAxesOf(argument, normalised));
  }
}

Variant Donated(const Variant& variant) {
  Variant donated;
  donated.remat = variant.remat;
  donated.donated = true;
  donated.source = compiler::CopyOf(variant.source);
  donated.decisions = variant.decisions;
  donated.products = variant.products;
  donated.work = variant.work;
  donated.read_seconds = variant.read_seconds;
  return donated;
}

}  // namespace

std::string NameOf(const Variant& variant) {
  std::vector<std::string> parts;
  for (const remat::StatedPolicy& policy : variant.remat) {
    parts.push_back(fmt::format("{} {}", policy.name, remat::ToString(policy.policy)));
  }
  if (variant.donated) parts.emplace_back("donated");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> OptionsOf(const Variant& variant) {
  std::vector<std::string> words;
  for (const remat::StatedPolicy& policy : variant.remat) {
    words.insert(words.end(), {"--remat", policy.text});
  }
  if (variant.donated) words.emplace_back("--donate");
  return words;
}

absl::StatusOr<Program> ProgramOf(hlo::ImportedWorkload imported, const configs::Config& config,
                                  const compiler::TripCountOverrides& trip_counts,
                                  const VariantOptions& options) {
  if (imported.partitioned) {
    return UserError("the module is partitioned already: there are no shardings to choose");
  }
  ASSIGN_OR_RETURN(std::vector<remat::NameUse> names, remat::NamesOf(*imported.module));
  std::vector<std::vector<remat::StatedPolicy>> policies =
      PoliciesToTry(std::move(names), options.remat);
  const std::unique_ptr<hlo::Module> as_it_came = std::move(imported.module);
  compiler::TripCounts trips(imported.workload, trip_counts);
  const target::Target target(config);
  Program program;
  program.imported = std::move(imported);
  for (std::vector<remat::StatedPolicy>& kept : policies) {
    std::vector<remat::StatedPolicy> stated = options.remat;
    stated.insert(stated.end(), kept.begin(), kept.end());
    Variant variant;
    variant.remat = std::move(kept);
    hlo::ImportedWorkload as_stated = compiler::WithoutModule(program.imported);
    as_stated.module = as_it_came->Clone();
    ASSIGN_OR_RETURN(variant.source, compiler::Normalise(std::move(as_stated), stated));
    if (program.variants.empty()) Describe(*variant.source.normalised, program);
    RETURN_IF_ERROR(Fill(target, trips, options.constrainable, program.imported, variant));
    program.variants.push_back(std::move(variant));
  }
  if (options.may_donate) {
    const size_t kept = program.variants.size();
    for (size_t n = 0; n < kept; ++n) program.variants.push_back(Donated(program.variants[n]));
  }
  return program;
}

}  // namespace tpusim::search

#include "workloads/search/program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "configs/status_macros.h"
#include "workloads/compiler/compile.h"
#include "workloads/hlo/ir/opcode.h"
#include "workloads/passes/loops/loops.h"
#include "workloads/passes/pipeline/pass.h"
#include "workloads/passes/simplify/simplify.h"
#include "workloads/search/matrix_time.h"
#include "workloads/target/target.h"

namespace tpusim::search {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool IsCounted(const Instruction& i) {
  return i.opcode() == Opcode::kDot || i.opcode() == Opcode::kConvolution;
}

// What becomes of a product has its metadata: the name goes there.
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

// By dimension the names of the axes; empty where nothing is said.
std::vector<std::vector<std::string>> SaidOf(const Instruction* argument,
                                             const sharding::NormalisedModule& module) {
  std::vector<std::vector<std::string>> dims;
  const auto said = module.annotations.find(argument);
  if (said == module.annotations.end() || said->second.leaves.size() != 1) return dims;
  const std::optional<sharding::Sharding>& sharding = said->second.leaves[0];
  if (!sharding) return dims;
  for (const sharding::DimSharding& dim : sharding->dims) {
    std::vector<std::string>& axes = dims.emplace_back();
    for (const sharding::AxisRef& axis : dim.axes) {
      axes.push_back(module.mesh.mesh.axes[axis.axis].name);
    }
  }
  return dims;
}

// What is known of a form once its module is.
absl::Status Fill(const sharding::Decisions& decisions, const target::Target& target,
                  compiler::TripCounts& trips, Form& form) {
  for (const hlo::Computation* computation : form.normalised.partitioned) {
    for (const Instruction* i : computation->instructions()) form.values.insert(i->name());
  }
  const passes::PassContext context(target);
  // What the compiler finds to be computed twice, or alike in every iteration, runs once.
  const std::unique_ptr<hlo::Module> module = form.normalised.module->Clone();
  NameProducts(*module);
  RETURN_IF_ERROR(passes::Simplify(*module, context).status());
  RETURN_IF_ERROR(passes::HoistInvariants(*module, context).status());
  Products products(target, trips);
  RETURN_IF_ERROR(products.Add(*module->entry(), 1));
  for (const auto& [name, reach] : decisions.products) {
    const auto found = products.seconds.find(name);
    if (found != products.seconds.end()) form.products.push_back({name, found->second, reach});
  }
  return absl::OkStatus();
}

Form Donated(const Form& form) {
  Form donated;
  donated.name = form.name.empty() ? "donated" : form.name + ", donated";
  donated.options = form.options;
  donated.options.emplace_back("--donate");
  donated.donated = true;
  donated.normalised = sharding::CopyOf(form.normalised);
  donated.products = form.products;
  donated.values = form.values;
  return donated;
}

}  // namespace

hlo::ImportedWorkload CopyOf(const hlo::ImportedWorkload& imported) {
  hlo::ImportedWorkload copy;
  copy.workload = imported.workload;
  copy.container = imported.container;
  copy.num_partitions = imported.num_partitions;
  copy.partitioned = imported.partitioned;
  copy.compiled = imported.compiled;
  return copy;
}

absl::StatusOr<Program> ProgramOf(hlo::ImportedWorkload imported, const configs::Config& config,
                                  const compiler::TripCountOverrides& trip_counts,
                                  const FormOptions& options) {
  if (imported.partitioned) {
    return UserError("the module is partitioned already: there are no shardings to choose");
  }
  ASSIGN_OR_RETURN(sharding::NormalisedModule normalised,
                   compiler::NormalisedOf(imported, options.remat));
  if (!normalised.manual_regions.empty()) {
    return UserError(
        "the program has a shard_map: what it says of shards is for its own mesh and shardings");
  }
  Program program;
  ASSIGN_OR_RETURN(program.decisions, sharding::FindDecisions(normalised));
  program.mesh = normalised.mesh.mesh;
  for (const Instruction* argument : normalised.module->entry()->parameters()) {
    program.own.push_back(SaidOf(argument, normalised));
  }
  const target::Target target(config);
  compiler::TripCounts trips(imported.workload, trip_counts);
  Form& first = program.forms.emplace_back();
  first.normalised = std::move(normalised);
  RETURN_IF_ERROR(Fill(program.decisions, target, trips, first));
  if (options.may_donate) program.forms.push_back(Donated(first));
  program.imported = std::move(imported);
  return program;
}

}  // namespace tpusim::search

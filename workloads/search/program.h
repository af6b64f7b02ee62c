// A program as all candidates share it: its variants, and of each what there is to decide and what
// its products take on one device.
//
// A variant is the program with other statements than shardings: rematerialisation policies of its
// named values, arguments donated or not. The first is the program as it came.
#ifndef TPUSIM_WORKLOADS_SEARCH_PROGRAM_H_
#define TPUSIM_WORKLOADS_SEARCH_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/config.h"
#include "configs/units.h"
#include "workloads/compiler/session.h"
#include "workloads/compiler/trip_counts.h"
#include "workloads/hlo/io/import.h"
#include "workloads/remat/policies.h"
#include "workloads/sharding/decisions/decisions.h"
#include "workloads/sharding/normalised/normalise.h"
#include "workloads/sharding/types/sharding.h"

namespace tpusim::search {

// A dot or convolution that is left when the program has been simplified as a whole.
struct MatrixOperation {
  std::string name;
  double seconds = 0;  // of all executions, on the arrays of one device at their peak
  sharding::SplittableBy reach;
};

struct VariantOptions {
  bool may_donate = false;                 // variants with all arguments donated
  std::vector<remat::StatedPolicy> remat;  // of all variants; other names vary
  std::vector<std::string> constrainable;  // values that may get constraints, as they are called
};

struct Variant {
  std::vector<remat::StatedPolicy> remat;  // of names that are not computed again
  bool donated = false;
  compiler::NormalisedProgram source;     // that every candidate is compiled from
  sharding::Decisions decisions;
  std::vector<MatrixOperation> products;
  // The share of the time of all products that are split with a decision, by decision.
  std::vector<double> work;
  // Seconds that one device reads an argument from HBM, by argument; 0: not all of it, or not from
  // there.
  std::vector<double> read_seconds;
};

// "context saved, donated"; "" = as the program came.
std::string NameOf(const Variant& variant);
// --remat and --donate, as words of a command.
std::vector<std::string> OptionsOf(const Variant& variant);

struct Program {
  hlo::ImportedWorkload imported;  // without its module
  sharding::Mesh mesh;             // the program's own; no axes: it has none
  bool keeps_mesh = false;         // it has a shard_map, whose shapes are for that mesh
  // The axes that the program itself states, by argument and dimension. Empty: it states none.
  std::vector<std::vector<std::vector<std::string>>> own;
  std::vector<Variant> variants;  // one at least
};

// Errors: as ShardModule; a module that is partitioned already; a loop whose trip count is not
// known.
absl::StatusOr<Program> ProgramOf(hlo::ImportedWorkload imported, const configs::Config& config,
                                  const compiler::TripCountOverrides& trip_counts,
                                  const VariantOptions& options = {});

}  // namespace tpusim::search

#endif  // TPUSIM_WORKLOADS_SEARCH_PROGRAM_H_

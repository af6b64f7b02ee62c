// Statements of the user and the exporter about a program that its text does not tell.
//
// The passes of annotate/ write statements into the module, in front of all others: into layouts,
// donors and frontend attributes. Every later stage reads them there, and they are to be read in
// the module's text.
#ifndef TPUSIM_WORKLOADS_PASSES_PIPELINE_STATEMENTS_H_
#define TPUSIM_WORKLOADS_PASSES_PIPELINE_STATEMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "workloads/kernels/opaque/custom_cost.h"

namespace tpusim::passes {

// `sizes` are rows, or shares of all rows if `shares` is set; none: all equal.
struct RaggedOverride {
  std::string name;  // of an instruction; may be a glob
  std::vector<double> sizes;
  bool shares = false;
};

// "NAME=s0,s1,...": rows, or shares of them if one has a decimal point; or
// "NAME=uniform". nullopt: none of these.
std::optional<RaggedOverride> ParseRaggedOverride(const std::string& text);

// --routing: how often the experts of a mixture are asked for.
struct Routing {
  std::string text;     // as it was given
  double exponent = 0;  // of zipf; 0: all equally often
  // Rows of each expert, layer by layer; empty: by the exponent.
  std::vector<std::vector<int64_t>> layers;

  bool is_uniform() const { return layers.empty() && exponent == 0; }
};

// "uniform", "zipf:EXPONENT", or a JSON file of lists of rows per expert, one per layer. Error:
// what is wrong, and in which layer.
absl::StatusOr<Routing> ParseRouting(const std::string& text);

struct Statements {
  // The memories that arguments come from: JAX's names per entry parameter ("device",
  // "pinned_host"); empty: all are on the device.
  std::vector<std::string> argument_memories;
  // --donate: as if the caller gave up all its arguments, so that results may lie in their place.
  bool donate = false;
  // --kernel-time compiler: kernels take as long as the TPU compiler thought that they do.
  bool compiler_times = false;
  // --kernel-cost NAME=FLOPS,BYTES or NAME=TIME of custom calls; before what the workload says.
  std::vector<kernels::NamedCost> kernel_costs;
  // --trip-count of loops inside of kernels; null: none is stated.
  kernels::KernelTrips kernel_trips;
  // --branch NAME=k or NAME=longest; NAME is a conditional's name or a glob.
  std::vector<std::pair<std::string, std::string>> branches;
  // --ragged NAME=SIZES of ragged dots and ragged all-to-alls. First match wins.
  std::vector<RaggedOverride> ragged;
  // --routing of ragged operations that --ragged does not name.
  Routing routing;
  // Over which the program is divided.
  int64_t partitions = 1;
};

}  // namespace tpusim::passes

#endif  // TPUSIM_WORKLOADS_PASSES_PIPELINE_STATEMENTS_H_

// The report of one simulated step: what `--report` writes, what the summary and `compare` read.
//
// Everything is of one device, the critical one (the first of the class that finishes last), unless
// it says "pod". Times of ops and collectives are sums over their executions; `expected` and
// `bound` of a collective are of one execution. Nothing here depends on the wall clock or on what
// was recorded for the trace.
#ifndef TPUSIM_SIM_RESULTS_REPORT_REPORT_H_
#define TPUSIM_SIM_RESULTS_REPORT_REPORT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "configs/memory.h"
#include "configs/topology.h"
#include "configs/units.h"
#include "models/isa/program_info.h"
#include "sim/results/report/critical_path.h"
#include "sim/results/report/overlap.h"
#include "sim/results/report/placed_ops.h"
#include "sim/results/report/producer.h"
#include "sim/results/report/reshard_sites.h"
#include "sim/results/report/rollup.h"
#include "sim/timeline.h"

namespace tpusim::results {

// Times that no machine of these nominal rates can beat.
struct Bounds {
  Picoseconds compute{0};  // matrix work at the peak of the arrays
  Picoseconds hbm{0};      // bytes of kernels and collectives at the nominal HBM rate
  Picoseconds ici{0};      // the fullest link of the pod; serial collectives one after the other
  Picoseconds host{0};     // 0: no host transfers
  Picoseconds dcn{0};      // 0: one slice
};

struct OpReport {
  std::string name, category, scope, source;
  std::string engine;  // "tensor_core", "collective", "sparse_core", "dma", "host"
  int64_t count = 0;
  Picoseconds total{0};  // includes the operations inside (loops)
  Flops flops{0};        // all executions
  Bytes hbm_bytes{0};    // all executions, as they ran
  // The TPU compiler's estimate of all executions; 0: it gave none.
  Picoseconds compiler_estimate{0};
};

// A prefix of op_name paths: everything that ran inside one named scope. The time is that of the
// main stream, waits for collectives included, so that scopes side by side add up to the step at
// most. Exposed communication may be more: a kernel that waits for HBM hides no collective.
struct ScopeReport {
  std::string scope;
  Picoseconds total{0};
  Picoseconds exposed{0};
  Flops flops{0};
};

struct CollectiveReport {
  std::string name, kind, axes, algorithm, scope, source;
  Bytes bytes{0};  // V of one execution
  int64_t group_size = 0;
  int64_t count = 0;
  Picoseconds total{0}, exposed{0};   // all executions
  // One execution whose members start together. No bound (0) where the critical device comes later
  // than those that it receives from, and so is done sooner.
  Picoseconds expected{0}, bound{0};
  Picoseconds hidden() const { return total - exposed; }
  std::vector<OverlapReport> covered_by;  // hidden by these operations, most first
  std::vector<OverlapReport> exposed_by;  // most first; adds up to `exposed`
};

// The contents of HBM when a device needs most of it.
struct MemoryReport {
  Picoseconds time{0};    // first, in the step
  std::string operation;  // that is executed then
  Bytes fragmentation{0};
  std::vector<std::pair<std::string, Bytes>> by_owner;  // most first
  std::vector<isa::LiveArray> arrays;                   // largest first
};

struct LinkReport {
  int64_t chip = 0;
  configs::Direction direction = configs::Direction::kXPlus;
  Bytes bytes{0};
  double utilization = 0;  // of the nominal rate over the whole step
};

// The errors of simulations of this kind against measurements (error_bar.h).
struct ErrorBar {
  std::string chip;
  std::string kind;  // "" = none of those that were measured
  int64_t rows = 0;
  double mean = 0;        // of the absolute errors
  double worst = 0;       // signed: below 0 the simulated step was too short
  std::string worst_row;  // "V40"
  std::string text;       // for people, of whatever the others say
};

// The cost of experts that are asked for unequally (--routing).
struct RoutingReport {
  std::string routing;         // as it was given; "" = uniform
  int64_t hot_device = 0;      // in its group
  double imbalance = 1;        // rows of the hot device over the mean
  double dropped_percent = 0;  // of all rows, which find no room on their device
  Picoseconds balanced_step{0};
};

// A record of the compiler (configs/record.h) that can be read back.
struct RecordReport {
  std::string reason, action, pass, subject, text;
  using Values = std::vector<std::pair<std::string, std::variant<int64_t, double, std::string>>>;
  Values values;
};

struct Report {
  Producer producer;
  std::string workload, config;
  std::string compiler;  // whose policy holds: "libtpu-0.0.42"
  Picoseconds step_time{0};
  Bounds bound;
  // Model and all FLOPs, against the published bf16 peak: more than 1 with products of formats that
  // the arrays compute faster (int8, fp8).
  double mfu = 0, hfu = 0;
  Flops flops{0};           // all arithmetic of one device
  // Nominal rates of one device, for rooflines; the first is the published bf16 peak.
  FlopsPerSecond peak_flops_per_second{0};
  BytesPerSecond hbm_bytes_per_second{0};
  Picoseconds exposed{0}, hidden{0};
  // Memories that are planned; 0 for those that the chip does not have.
  configs::PerMemory<Bytes> peak, usable;
  MemoryReport memory_at_peak;
  isa::VmemAtPeak vmem_at_peak;
  int64_t devices = 0, chips = 0, chip_classes = 0;  // pod
  sim::FoldingReport folding;
  int64_t events = 0;
  std::vector<OpReport> ops;                     // longest first
  std::vector<ScopeReport> scopes;               // by name
  std::vector<CollectiveReport> collectives;     // longest first
  std::vector<ReshardSiteReport> reshard_sites;  // most exposed first
  Rollups rollups;                               // where the step goes
  PathTimes critical_path{};                     // of the pod; adds up to the step
  std::vector<LinkReport> links;                 // pod; chip major
  ErrorBar error_bar;                            // of the step time
  RoutingReport routing;
  std::vector<std::string> assumptions, warnings;
  // Records behind assumptions and warnings, and decisions that were asked for.
  std::vector<RecordReport> records;

  // Figures for the summary and `compare`, which are not in the report file.
  int64_t partitions = 0;
  std::string device_order;
  Picoseconds compute_busy{0}, mxu_busy{0}, vpu_busy{0};
  PlacedProgram placed;  // likewise, where `compare` may line programs up
};

inline constexpr std::string_view kReportSchema = "tpusim.report/1";

enum class JsonDetail {
  kReport,    // exactly that schema
  kExchange,  // with what `compare` needs besides, as "detail": between processes
  kPlaced,    // with `placed`, too
};
// Ends in a newline. Keys in a fixed order, numbers in their shortest exact form.
std::string ToJson(const Report& report, JsonDetail detail = JsonDetail::kReport);
// Reads what this version writes, either. Without "detail" that stays empty.
absl::StatusOr<Report> FromJson(const std::string& text);

}  // namespace tpusim::results

#endif  // TPUSIM_SIM_RESULTS_REPORT_REPORT_H_

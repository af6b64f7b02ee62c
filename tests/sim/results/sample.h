// A made-up step of 100 us on two made-up chips with round figures:
//
//   chip     100 TFLOP/s (bf16 and by array geometry), HBM 1 TB/s (80 % sustained), links 100 GB/s
//   slice    2x1, unwrapped: chip 0 --x+--> chip 1 --x---> chip 0
//
//   us         0      20                              92    100
//   TensorCore [all-g.][while.2 [fusion.3][fusion.3]  ][loop_fusion.5]
//                       20-55     56-91
//   streams    [all-g.][permute.4 20-50][permute.4 56-86]
//
// Both devices do the same at the same time.
#ifndef TPUSIM_TESTS_SIM_RESULTS_SAMPLE_H_
#define TPUSIM_TESTS_SIM_RESULTS_SAMPLE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "configs/topology.h"
#include "models/isa/program_info.h"
#include "sim/results/report/report.h"
#include "sim/results/trace/trace_model.h"
#include "sim/timeline.h"

namespace tpusim::results {

enum SampleOp : int32_t { kAllGather, kWhile, kMatmul, kPermute, kLoopFusion };

struct Sample {
  configs::Config config;
  isa::ProgramInfo info;
  sim::Timeline timeline;
};
Sample MakeSample();
// Returns a report of the workload "f".
Report SampleReport();

// A recording of just these.
sim::Recording Recorded(const std::vector<sim::Span>& spans,
                        const std::vector<sim::CounterSample>& samples = {});

// The whole trace of a step: all its windows.
absl::StatusOr<TraceModel> WholeTrace(const Sample& s);
TraceTotals TotalsOf(const TraceModel& whole);
// The bytes of the file that WritePerfettoTrace writes.
std::string PerfettoBytes(const Sample& s);

}  // namespace tpusim::results

#endif  // TPUSIM_TESTS_SIM_RESULTS_SAMPLE_H_

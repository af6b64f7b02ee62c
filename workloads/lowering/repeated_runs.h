// Runs of instructions that repeat at once, again and again: the layers of an unrolled model.
#ifndef TPUSIM_WORKLOADS_LOWERING_REPEATED_RUNS_H_
#define TPUSIM_WORKLOADS_LOWERING_REPEATED_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/isa/program.h"
#include "workloads/lowering/operations.h"

namespace tpusim::lowering {

// Fewer iterations cost more to pass over than to execute.
inline constexpr int64_t kFewestIterations = 6;

// [begin, begin + count * length): every `length` of them are the ones before.
struct RepeatedRun {
  size_t begin = 0, length = 0;
  int64_t count = 0;
};

// Finds runs of numbers that repeat; equal numbers do the same. They have enough iterations, are in
// order and do not overlap.
std::vector<RepeatedRun> FindRepeatedRuns(const std::vector<int32_t>& done);

// The names of the iterations of a run in this schedule; null: they do not grow by the same from
// each to the next.
std::shared_ptr<const isa::Iterations> IterationsOf(const RepeatedRun& run,
                                                    const std::vector<Scheduled>& schedule,
                                                    const Operations& operations);

// Appends what tells a kernel, a block or a transfer within the chip from others.
void AppendWork(const isa::Block& block, std::vector<int64_t>& work);
void AppendWork(const isa::Kernel& kernel, std::vector<int64_t>& work);
void AppendWork(const isa::Body& transfer, std::vector<int64_t>& work);

}  // namespace tpusim::lowering

#endif  // TPUSIM_WORKLOADS_LOWERING_REPEATED_RUNS_H_
